/* Fits the costs of the issuing thread, and of work on the host's processors, to points. */
#include "models/calibrate_parts.h"

#include <stddef.h>
#include <string.h>

static const double SCALE_S = 1e-7; /* fit_param.scale of all times: they may be 0 */

/* ---- the issuing thread ---- */

static bool is_issue_point(const struct calibrate_problem *problem, const struct point *point)
{
    (void)problem;
    return point->role == POINT_ISSUE || point->role == POINT_LAUNCH;
}

static double issue_s(const struct device_cost *cost, const struct point *point)
{
    return point->role == POINT_LAUNCH ? cost->host_kernel_s
                                       : cost_host_issue_s(cost, &point->work);
}

static double predict_issue_s(const struct calibrate_problem *problem, const struct point *point)
{
    return issue_s(&problem->calibration->cost, point);
}

/* Returns the factor of one number of the host (host.op_s and the like) in the issue time of a point, which is a sum of
 * such numbers times factors. offset: of the number in struct device_cost. */
static double issue_time_coefficient_of_number(const struct point *point, size_t offset)
{
    struct device_cost one = {0};
    *(double *)((char *)&one + offset) = 1;
    return issue_s(&one, point);
}

/* Makes host.op_s a parameter of the fit if a point issues an op, and host.kernel_s one if the points can separate it
 * from host.op_s: some are launches by themselves, or kinds differ in the number of kernels per op. Adds a note if no
 * point issues an op, and one if host.kernel_s cannot be separated from host.op_s. */
static void add_op_and_kernel_params(struct calibrate_problem *problem)
{
    double ratio = -1;
    bool ops = false, differ = false, launches = false;
    for (size_t i = 0; i < problem->point_count; i++) {
        double per_op = issue_time_coefficient_of_number(problem->point[i],
                                                         offsetof(struct device_cost, host_op_s));
        double kernels = issue_time_coefficient_of_number(
            problem->point[i], offsetof(struct device_cost, host_kernel_s));
        launches |= per_op == 0 && kernels > 0;
        if (per_op == 0)
            continue;
        differ |= ops && kernels / per_op != ratio;
        ratio = kernels / per_op;
        ops = true;
    }
    if (ops)
        calibrate_add_cost_param(problem, "host.op_s", SCALE_S, false);
    if (differ || launches)
        calibrate_add_cost_param(problem, "host.kernel_s", SCALE_S, false);
    if (ops && !differ && !launches)
        text_puts(&problem->calibration->notes,
                  "host.kernel_s: all points launch as many kernels per op; it "
                  "stays as the base has it, and host.op_s holds the rest\n");
    if (!ops)
        text_puts(&problem->calibration->notes,
                  "host.op_s: no point issues an op; it stays as the base has it\n");
}

enum status calibrate_host_issue(struct calibrate_problem *problem, struct diag *diag)
{
    struct device_cost *cost = &problem->calibration->cost;
    static const struct {
        size_t offset;
        const char *name, *what;
    } singles[] = {
        {offsetof(struct device_cost, host_collective_s), "host.collective_s", "a collective"},
        {offsetof(struct device_cost, host_copy_s), "host.copy_s", "a copy"},
        {offsetof(struct device_cost, host_sync_s), "host.sync_s", "a wait for the device"},
    };
    problem->name = "host";
    problem->help = "measure issue again, of kinds that launch one kernel and of kinds that launch "
                    "several";
    problem->predict = predict_issue_s;
    problem->rms_error_limit *= 2;
    calibrate_select_points(problem, is_issue_point);
    if (problem->point_count == 0)
        return STATUS_OK;
    add_op_and_kernel_params(problem);
    for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
        bool measured = false;
        for (size_t k = 0; k < problem->point_count; k++)
            measured |= issue_time_coefficient_of_number(problem->point[k], singles[i].offset) > 0;
        if (measured)
            calibrate_add_cost_param(problem, singles[i].name, SCALE_S, false);
        else
            text_printf(&problem->calibration->notes,
                        "%s: no point is of %s; it stays as the base has it\n", singles[i].name,
                        singles[i].what);
    }
    return calibrate_fit(problem, &cost->calibration[COST_HOST], diag);
}

/* ---- the host's processors ---- */

static bool is_host_work_point(const struct calibrate_problem *problem, const struct point *point)
{
    (void)problem;
    return point->role == POINT_HOST;
}

static double predict_host_work_s(const struct calibrate_problem *problem,
                                  const struct point *point)
{
    return cost_host_work_s(&problem->calibration->cost, problem->host_memory_bytes_per_s,
                            &point->work);
}

enum status calibrate_host_work(struct calibrate_problem *problem, struct diag *diag)
{
    static const char key[] = "host_memory_bytes_per_s";
    struct device_cost *cost = &problem->calibration->cost;
    problem->name = "cpu";
    problem->help = "add work on a host stream, small and large";
    problem->predict = predict_host_work_s;
    problem->host_memory_bytes_per_s = problem->options->host_memory_bytes_per_s;
    calibrate_select_points(problem, is_host_work_point);
    if (problem->point_count == 0)
        return STATUS_OK;
    enum status status = calibrate_check_size_varies(problem, COST_SIZE_BYTES, diag);
    for (size_t i = 0; i < problem->all_points->header_count && status == STATUS_OK; i++) {
        const struct points_header_line *header = &problem->all_points->header_line[i];
        if (problem->host_memory_bytes_per_s > 0 || strcmp(header->key, key) != 0)
            continue;
        status = units_parse(header->value, strlen(header->value), UNIT_BYTES_PER_S,
                             &problem->host_memory_bytes_per_s, header->at, diag);
    }
    if (status == STATUS_OK && !(problem->host_memory_bytes_per_s > 0))
        status = diag_error(diag, (struct loc){.name = problem->point[0]->at.name}, STATUS_NO,
                            "cpu: there are points on host streams, but the bandwidth of host "
                            "memory is not known: give the header key %s",
                            key);
    if (status != STATUS_OK)
        return status;
    calibrate_add_cost_param(problem, "cpu.stream_fraction", 0, false);
    calibrate_add_cost_param(problem, "cpu.start_s", SCALE_S, false);
    return calibrate_fit(problem, &cost->calibration[COST_CPU], diag);
}
