/* Measured points, which replace or correct formulas (docs/costs.md, "Measured points"). */
#include "models/cost_points.h"
#include "models/points.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Which measured points correct the formula of a shape that was not measured. A point is near the shape if the
 * Euclidean distance between the logarithms of their sides is at most NEAR_DISTANCE = log 4. The nearest
 * NEAR_POINTS_MAX of these points count; here the distance has a further coordinate: the number of attributes in which
 * the two differ (the form of a product, the mask of attention), times ATTRIBUTE_DISTANCE = log 2. If fewer than
 * NEAR_POINTS_MIN points are near, there is no correction: with so few, the formula alone is as good. */
enum { NEAR_POINTS_MIN = 4, NEAR_POINTS_MAX = 8, SIDES = 3 };
static const double NEAR_DISTANCE = 1.386, ATTRIBUTE_DISTANCE = 0.693;

struct nearest_points {
    size_t count;
    double distance[NEAR_POINTS_MAX]; /* ascending */
    const struct cost_point *point[NEAR_POINTS_MAX];
};

static bool is_product(const struct work *work)
{
    return work->kind == WORK_MATMUL;
}

static bool can_kind_have_points(enum work_kind kind)
{
    return kind == WORK_MATMUL || kind == WORK_ATTENTION || kind == WORK_ATTENTION_BACKWARD;
}

/* Returns a class of dtypes with equal times: bf16 and f16 are one. */
static uint8_t timing_class_of_dtype(uint8_t dtype)
{
    return dtype == DTYPE_F16 ? DTYPE_BF16 : dtype;
}

/* True if a measured point can correct the formula for a work: kernels, dtype of the operands and number of groups are
 * the same. */
static bool can_correct_formula(const struct cost_point *point, enum attention_impl impl,
                                const struct work *work)
{
    return point->work.kind == work->kind &&
           work_row_group_count(&point->work) == work_row_group_count(work) &&
           timing_class_of_dtype(point->work.in) == timing_class_of_dtype(work->in) &&
           (is_product(work) || point->impl == impl);
}

/* Returns the number of attributes, other than its three sides, in which two comparable works differ. */
static int attribute_difference_count(const struct work *a, const struct work *b)
{
    int apart = timing_class_of_dtype(a->out) != timing_class_of_dtype(b->out);
    if (is_product(a))
        return apart + (a->matmul.form != b->matmul.form) +
               (a->matmul.accumulate != b->matmul.accumulate);
    return apart + (a->attention.dim != b->attention.dim) +
           (work_attention_vdim(a) != work_attention_vdim(b)) +
           (a->attention.mask != b->attention.mask) + (a->attention.offset != b->attention.offset) +
           (a->attention.window != b->attention.window) +
           (a->attention.heads * b->attention.kv_heads !=
            b->attention.heads * a->attention.kv_heads);
}

/* Returns the Euclidean distance between the logarithms of the sides, which are m, n, k, or queries, keys, heads. */
static double log_side_distance(const struct work *a, const struct work *b)
{
    double square = 0;
    for (int i = 0; i < SIDES; i++) {
        double log_ratio = log((double)a->p[i] / (double)b->p[i]);
        square += log_ratio * log_ratio;
    }
    return sqrt(square);
}

static void add_nearest(struct nearest_points *near, const struct cost_point *point,
                        double distance)
{
    size_t at = near->count;
    if (at == NEAR_POINTS_MAX && near->distance[--at] <= distance)
        return;
    if (at == near->count)
        near->count++;
    for (; at > 0 && near->distance[at - 1] > distance; at--) {
        near->distance[at] = near->distance[at - 1];
        near->point[at] = near->point[at - 1];
    }
    near->distance[at] = distance;
    near->point[at] = point;
}

static struct cost_tensor_work tensor_work_of(const struct device_cost *cost,
                                              enum attention_impl impl, const struct work *work)
{
    return work->kind == WORK_MATMUL ? cost_matmul_tensor_work(cost, work)
                                     : cost_attention_tensor_work(cost, impl, work);
}

/* Returns the time of a measured point at a clock. A time of a short run is converted to the clock of steps by the
 * power limit. A time that was measured at the clock of steps is kept, since how much faster a short run would be is
 * not known. */
static double point_s_at_clock(const struct device_cost *cost, const struct cost_point *point,
                               enum cost_clock_kind clock)
{
    if (clock == COST_BURST || point->is_at_step_clock)
        return point->seconds;
    const struct cost_tensor_work busy =
        tensor_work_of(cost, (enum attention_impl)point->impl, &point->work);
    return cost_sustained_s(cost, &busy, point->seconds);
}

/* The measured points that have the sides of a work. Only those count that differ from it in the fewest attributes, and
 * of these only the ones measured at the wanted clock, if there are any. */
struct same_sides_points {
    int differing_attribute_count; /* number of attributes in which they differ; INT_MAX: there are no points */
    bool is_measured_at_wanted_clock; /* they were measured at the wanted clock */
    double log_ratio_sum;             /* sum of the logarithms of measured time / formula */
    int point_count;
};

/* Adds a point with the same sides if it counts beside those found before; a better point replaces them all. */
static void add_same_sides_point(struct same_sides_points *found, int apart,
                                 bool is_measured_at_wanted_clock, double log_ratio)
{
    if (apart > found->differing_attribute_count ||
        (apart == found->differing_attribute_count && found->is_measured_at_wanted_clock &&
         !is_measured_at_wanted_clock))
        return;
    if (apart < found->differing_attribute_count ||
        is_measured_at_wanted_clock != found->is_measured_at_wanted_clock)
        *found =
            (struct same_sides_points){.differing_attribute_count = apart,
                                       .is_measured_at_wanted_clock = is_measured_at_wanted_clock};
    found->log_ratio_sum += log_ratio;
    found->point_count++;
}

double cost_points_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock_kind clock, cost_function *formula)
{
    struct nearest_points near = {0};
    struct same_sides_points found = {.differing_attribute_count = INT_MAX};
    for (size_t i = 0; i < cost->points.count && can_kind_have_points((enum work_kind)work->kind);
         i++) {
        const struct cost_point *point = &cost->points.row[i];
        if (!can_correct_formula(point, impl, work))
            continue;
        double sides = log_side_distance(&point->work, work);
        int apart = attribute_difference_count(&point->work, work);
        if (sides <= 0)
            add_same_sides_point(&found, apart,
                                 point->is_at_step_clock == (clock == COST_SUSTAINED),
                                 log(point_s_at_clock(cost, point, clock) /
                                     formula(cost, impl, &point->work, clock)));
        else if (sides <= NEAR_DISTANCE)
            add_nearest(&near, point, hypot(sides, apart * ATTRIBUTE_DISTANCE));
    }
    double seconds = formula(cost, impl, work, clock), sum = 0, weights = 0;
    if (found.point_count > 0)
        return seconds * exp(found.log_ratio_sum / found.point_count);
    if (near.count < NEAR_POINTS_MIN)
        return seconds;
    for (size_t i = 0; i < near.count; i++) {
        const struct cost_point *point = near.point[i];
        double weight = 1 / (1 + near.distance[i] * near.distance[i]);
        sum += weight *
               log(point_s_at_clock(cost, point, clock) / formula(cost, impl, &point->work, clock));
        weights += weight;
    }
    seconds *= exp(sum / weights);
    if (clock == COST_BURST)
        return seconds;
    const struct cost_tensor_work busy = tensor_work_of(cost, impl, work);
    return fmax(seconds, cost_sustained_s(cost, &busy, 0));
}

/* ---- reading ---- */

static void copy_points_of_device(struct cost_reader reader, const struct points *points)
{
    struct cost_points *kept = &reader.cost->points;
    kept->row = arena_array(reader.arena, points->count + 1, sizeof *kept->row);
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->row[i];
        bool sustained = point->role == POINT_STEP || point->role == POINT_SUSTAINED;
        if ((point->role == POINT_WORK || sustained) &&
            can_kind_have_points((enum work_kind)point->work.kind))
            kept->row[kept->count++] = (struct cost_point){
                .work = point->work,
                .seconds = point->median_s,
                .impl = point->attention_impl < POINT_NO_IMPL ? point->attention_impl : 0,
                .is_at_step_clock = sustained};
    }
}

enum status cost_points_read(struct cost_reader reader, struct json_node node)
{
    static const char *const known[] = {"file", "source"};
    const char *file, *source;
    struct diag *diag = reader.diag;
    if (!json_is_object(node))
        return json_error(node, diag, "expected {\"file\": \"....csv\", \"source\": \"...\"}");
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "file", &file, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "source", &source, diag);
    if (status != STATUS_OK)
        return status;
    const char *from = json_loc(node).name, *slash = strrchr(from, '/');
    if (slash != NULL && file[0] != '/')
        file = arena_printf(reader.arena, "%.*s/%s", (int)(slash - from), from, file);
    reader.cost->points = (struct cost_points){.file = cost_copy_text(reader, file),
                                               .source = cost_copy_text(reader, source)};
    struct points points = {0};
    status = points_load(&points, reader.cost->points.file, diag);
    if (status == STATUS_OK)
        copy_points_of_device(reader, &points);
    if (status == STATUS_OK && reader.cost->points.count == 0)
        status =
            json_error(node, diag, "%s has no point of a matrix product or of attention", file);
    points_release(&points);
    return status;
}

void cost_points_drop_family(struct cost_points *points, bool attention)
{
    size_t kept = 0;
    for (size_t i = 0; i < points->count; i++)
        if (is_product(&points->row[i].work) == attention)
            points->row[kept++] = points->row[i];
    points->count = kept;
}
