#include "cli/measure/fitted.h"
#include "base/file_set.h"

#include "models/noise.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

void fitted_release(struct fitted *fitted)
{
    text_release(&fitted->unrequested_link_refusal_messages);
    calibration_release(&fitted->device_fit);
    link_calibration_release(&fitted->link_fit);
    points_release(&fitted->points);
    arena_release(&fitted->arena);
    *fitted = (struct fitted){0};
}

void fitted_drop_small_link_points(struct fitted *fitted, int64_t min_bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < fitted->points.count; i++) {
        enum calibrate_link_class link;
        const struct point *point = &fitted->points.row[i];
        bool of_link = calibrate_find_link_class_of_point(point, &link);
        if (of_link && work_payload_bytes(&point->work) < min_bytes)
            continue;
        fitted->has_links |= of_link;
        fitted->has_device |= !of_link;
        fitted->points.row[kept++] = *point;
    }
    fitted->points.count = kept;
}

static enum status load_base_device(struct fitted *fitted, const char *base, struct diag *diag)
{
    const char *backend = points_header_value(&fitted->points, "backend");
    fitted->base_name = base;
    if (fitted->base_name == NULL && backend && strcmp(backend, "cpu") == 0)
        fitted->base_name = "cpu-generic";
    if (fitted->base_name == NULL)
        return diag_error(diag, (struct loc){.name = "--base"}, STATUS_BAD_INPUT,
                          "name the preset that gives the numbers that were not measured; "
                          "`longhaul list devices` lists them");
    if (strchr(fitted->base_name, '.') || strchr(fitted->base_name, '/'))
        return diag_error(diag, (struct loc){.name = "--base"}, STATUS_BAD_INPUT,
                          "'%s' is no preset; a device file builds on a preset", fitted->base_name);
    size_t before = diag->size;
    enum status status = cost_load(&fitted->base_costs, &fitted->arena, fitted->base_name, diag);
    diag_add_place_to_errors(diag, before, "--base");
    return status;
}

/* If the spread of the points shows that other programs disturbed them, adds a note that advises what to do. It
 * follows the messages about refused fits. */
static void note_noisy_points(const struct fitted *fitted, const char *name, struct diag *diag)
{
    double spread = noise_median_p90_over_p10_of_all(&fitted->points);
    if (noise_shows_disturbance(spread, 0) && !fitted->options.falls_back_if_disturbed)
        diag_note(diag, (struct loc){.name = name},
                  "half of the measured points have a p90 above %.1f times their p10 (1.2 to 1.3 "
                  "on an idle machine), so other programs disturbed them: measure again when the "
                  "machine is idle, or accept the noise with --despite-noise",
                  spread);
}

enum status fitted_fit_points(struct fitted *fitted, const char *base, bool links_wanted,
                              const char *name, struct diag *diag)
{
    enum status device = STATUS_OK, links = STATUS_OK;
    if (!fitted->has_device && !fitted->has_links)
        return diag_error(diag, (struct loc){.name = name}, STATUS_NO, "no points are left to fit");
    if (fitted->has_device) {
        device = load_base_device(fitted, base, diag);
        if (device == STATUS_OK)
            device = calibrate_device(&fitted->device_fit, &fitted->points, &fitted->base_costs,
                                      &fitted->options, diag);
    }
    if (device == STATUS_NO && !links_wanted)
        note_noisy_points(fitted, name, diag);
    if (!fitted->has_links || (device != STATUS_OK && device != STATUS_NO))
        return device;
    if (!fitted->has_device || links_wanted) {
        links = calibrate_links(&fitted->link_fit, &fitted->points, &fitted->options, diag);
        if (device == STATUS_NO || links == STATUS_NO)
            note_noisy_points(fitted, name, diag);
        return device == STATUS_OK ? links : device;
    }
    /* links were not requested, so a refused fit of them is reported but is no error */
    struct diag refusal = {0};
    calibrate_links(&fitted->link_fit, &fitted->points, &fitted->options, &refusal);
    if (refusal.size > 0)
        text_printf(&fitted->unrequested_link_refusal_messages, "links not fitted:\n%s",
                    refusal.text);
    diag_release(&refusal);
    return device;
}

void fitted_put_report(const struct fitted *fitted, struct text *out)
{
    calibration_print_report(&fitted->device_fit, out);
    if (fitted->device_fit.median_p90_over_p10_of_points > 0)
        calibration_print_noise(&fitted->device_fit, fitted->base_name, out);
    link_calibration_print_report(&fitted->link_fit, out);
    if (fitted->unrequested_link_refusal_messages.size > 0)
        text_append(out, fitted->unrequested_link_refusal_messages.data,
                    fitted->unrequested_link_refusal_messages.size);
}

/* ---- files ---- */

/* Returns the name of a file, without its folders and without ".json". */
static const char *file_stem(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = strlen(name);
    if (size > 5 && strcmp(name + size - 5, ".json") == 0)
        size -= 5;
    return arena_text(arena, name, size);
}

/* Returns whether the fit of one of the families was given up because other programs disturbed its points. For that
 * family the file has a fit of the fastest times, or the numbers of the base; it is written even if no fit was
 * accepted. */
static bool was_measurement_disturbed(const struct calibrate_fallback *fallback, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found |= fallback[i].is_due_to_disturbed_points;
    return found;
}

static bool have_all_device_fits_failed(const struct fitted *fitted)
{
    return fitted->has_device && fitted->device_fit.family_count == 0 &&
           !was_measurement_disturbed(fitted->device_fit.fallback,
                                      fitted->device_fit.fallback_count);
}

static bool have_all_link_fits_failed(const struct fitted *fitted)
{
    size_t fits = 0;
    for (int i = 0; i < CALIBRATE_LINK_COUNT; i++)
        fits += fitted->link_fit.link_by_class[i].point_count > 0;
    return fitted->has_links && fits == 0 &&
           !was_measurement_disturbed(fitted->link_fit.fallback, fitted->link_fit.fallback_count);
}

/* Notes that a requested file is not written, since none of its fits succeeded. */
static enum status note_file_not_written(const char *path, struct diag *diag)
{
    diag_note(diag, (struct loc){.name = path},
              "none of the fits was accepted, so this file is not written");
    return STATUS_NO;
}

/* Notes that some numbers of the file are those of the base, if fits were refused for another reason than disturbed
 * points. */
static void note_numbers_kept_from_base(const char *path, const char *base,
                                        const struct calibrate_fallback *fallback, size_t count,
                                        struct diag *diag)
{
    bool refused = false;
    for (size_t i = 0; i < count; i++)
        refused |= fallback[i].has_kept_base_numbers && !fallback[i].is_due_to_disturbed_points;
    if (refused)
        diag_note(diag, (struct loc){.name = path},
                  "holds what could be fitted; numbers whose fit was refused are those of %s",
                  base);
}

/* Returns the path of the file of points that is written next to a device file, "mine.points.csv" for "mine.json".
 * Returns NULL if none is written: there is no points_source or no device file, or no point measures a matrix product
 * or attention (only for their shapes does a prediction read the file). */
static const char *path_for_saved_points(struct fitted *fitted, const char *device)
{
    bool shapes = false;
    for (size_t i = 0; i < fitted->points.count; i++) {
        uint8_t kind = fitted->points.row[i].work.kind;
        shapes |= kind == WORK_MATMUL || kind == WORK_ATTENTION || kind == WORK_ATTENTION_BACKWARD;
    }
    if (fitted->points_source == NULL || device == NULL || !shapes)
        return NULL;
    size_t size = strlen(device);
    if (size > 5 && strcmp(device + size - 5, ".json") == 0)
        size -= 5;
    return arena_printf(&fitted->arena, "%.*s.points.csv", (int)size, device);
}

/* Writes the text of the device file at `path` to *out, which must be empty. points: the path of
 * the file of points that it names; NULL: it names none. Fails, with a note, if the fitted numbers
 * are such that no device has them. */
static enum status print_device(struct fitted *fitted, const char *path, const char *name,
                                const char *points, struct text *out, struct diag *diag)
{
    const char *device = points_header_value(&fitted->points, "device");
    assert(fitted->has_device); /* the command has refused the option otherwise */
    if (name == NULL)
        name = file_stem(&fitted->arena, path);
    const char *note = device ? arena_printf(&fitted->arena, "%s, measured.", device) : NULL;
    calibration_print_device(&fitted->device_fit, name, fitted->base_name, note, out);
    struct device_cost again;
    enum status status = cost_parse(&again, &fitted->arena, path, out->data, out->size, diag);
    /* cost_parse() would read the file of points, which is not written yet. So the text is checked without the name
     * of that file, and made again with it. */
    if (status == STATUS_OK && points != NULL) {
        const char *slash = strrchr(points, '/');
        fitted->device_fit.points_file = slash != NULL ? slash + 1 : points;
        fitted->device_fit.points_source = fitted->points_source;
        out->size = 0;
        calibration_print_device(&fitted->device_fit, name, fitted->base_name, note, out);
    }
    if (status != STATUS_OK)
        diag_note(diag, (struct loc){.name = path},
                  "this file was not written: the points lead to numbers that no device has");
    return status;
}

/* Returns the path by which the cluster's file names another file, `device`: a full path as it is; otherwise the name
 * of the file if both are in one folder, else its full path. device NULL: returns NULL. */
static const char *device_path_in_cluster_file(struct arena *arena, const char *cluster,
                                               const char *device)
{
    if (device == NULL || device[0] == '/')
        return device;
    const char *a = strrchr(cluster, '/'), *b = strrchr(device, '/');
    size_t folder = a != NULL ? (size_t)(a - cluster) + 1 : 0;
    if (folder == (b != NULL ? (size_t)(b - device) + 1 : 0) &&
        memcmp(cluster, device, folder) == 0)
        return device + folder;
    char working_folder[4096];
    return getcwd(working_folder, sizeof working_folder) != NULL
               ? arena_printf(arena, "%s/%s", working_folder, device)
               : device;
}

static enum status print_cluster(struct fitted *fitted, const struct fitted_files *files,
                                 struct text *out, struct diag *diag)
{
    struct cluster cluster;
    size_t before = diag->size;
    const char *path = files->cluster_path;
    enum status status = cluster_load(&cluster, &fitted->arena, files->base_preset, diag);
    diag_add_place_to_errors(diag, before, "--cluster");
    if (status == STATUS_OK)
        status = link_calibration_print_cluster(
            &fitted->link_fit, file_stem(&fitted->arena, path),
            device_path_in_cluster_file(&fitted->arena, path, files->device_path),
            cluster_is_file(files->base_preset)
                ? device_path_in_cluster_file(&fitted->arena, path, files->base_preset)
                : files->base_preset,
            &cluster, out, diag);
    if (status == STATUS_OK)
        status = cluster_parse(&cluster, &fitted->arena, path, out->data, out->size, diag);
    return status;
}

enum status fitted_save(struct fitted *fitted, const struct fitted_files *files, struct diag *diag)
{
    struct text device = {0}, cluster = {0}, points = {0};
    struct file_set_path_and_data written_files[3];
    struct fitted_files fits = *files;
    size_t count = 0;
    enum status status = STATUS_OK, all = STATUS_OK;
    if (fits.device_path != NULL && have_all_device_fits_failed(fitted)) {
        all = note_file_not_written(fits.device_path, diag);
        fits.device_path = NULL;
    }
    if (fits.cluster_path != NULL && have_all_link_fits_failed(fitted)) {
        all = note_file_not_written(fits.cluster_path, diag);
        fits.cluster_path = NULL;
    }
    if (fits.device_path != NULL) {
        const char *shapes = path_for_saved_points(fitted, fits.device_path);
        status = print_device(fitted, fits.device_path, fits.device_name, shapes, &device, diag);
        written_files[count++] =
            (struct file_set_path_and_data){fits.device_path, device.data, device.size};
        if (shapes != NULL) {
            points_print(&fitted->points, &points);
            written_files[count++] =
                (struct file_set_path_and_data){shapes, points.data, points.size};
        }
        note_numbers_kept_from_base(fits.device_path, fitted->base_name,
                                    fitted->device_fit.fallback, fitted->device_fit.fallback_count,
                                    diag);
    }
    if (status == STATUS_OK && fits.cluster_path != NULL) {
        status = print_cluster(fitted, &fits, &cluster, diag);
        written_files[count++] =
            (struct file_set_path_and_data){fits.cluster_path, cluster.data, cluster.size};
        note_numbers_kept_from_base(fits.cluster_path, fits.base_preset, fitted->link_fit.fallback,
                                    fitted->link_fit.fallback_count, diag);
    }
    if (status == STATUS_OK)
        status = file_set_write_files(written_files, count, diag);
    text_release(&device);
    text_release(&cluster);
    text_release(&points);
    return status == STATUS_OK ? all : status;
}
