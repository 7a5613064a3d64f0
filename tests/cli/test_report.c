#include "cli/report/report.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

/* Whatever parts there are, what is printed of them adds up to what is printed of the whole. */
static void rounded_parts_add_up(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 2000; round++) {
        double part[13], whole = 0, scale = pow(10, (double)check_random_i64(&random, -6, 4));
        size_t count = (size_t)check_random_i64(&random, 1, 13);
        for (size_t i = 0; i < count; i++) {
            part[i] =
                check_random_i64(&random, 0, 2) == 0 ? 0 : check_random_double(&random) * scale;
            whole += part[i];
        }
        struct report_time time = report_time_for(whole);
        long long rounded[13], sum = 0;
        report_round(part, count, whole, time, rounded);
        double unit = time.unit_s / pow(10, time.decimals);
        for (size_t i = 0; i < count; i++) {
            sum += rounded[i];
            CHECK("near", fabs((double)rounded[i] - part[i] / unit) <= 1.0001);
        }
        CHECK_INT("sum", sum, llround(whole / unit));
    }
}

static const struct {
    double seconds;
    const char *text;
} times[] = {
    {1234.567, "1234.6 s"},   {58.0254, "58.025 s"}, {1.5, "1.500 s"},
    {0.0123456, "12.346 ms"}, {1.2e-5, "12.000 us"}, {0, "0.000 us"},
};

static void times_have_five_digits(void)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct report_time time = report_time_for(times[i].seconds);
        char text[64];
        snprintf(text, sizeof text, "%.*f %s", time.decimals, times[i].seconds / time.unit_s,
                 time.name);
        CHECK_TEXT("time", text, times[i].text);
    }
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static void check_lines(const char *label, const char *cluster, int weights, int activations,
                        int optimizer, int64_t seq)
{
    struct setup setup = {0};
    struct diag diag = {0};
    struct prediction p = {0};
    struct alternative best = {0};
    struct text out = {0};
    enum status status = setup_load_model(&setup, "llama3-8b", NULL, "layers=2", &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, cluster, 0, 0, &diag);
    setup_open_request(&setup);
    setup.request.seq = seq;
    setup.request.weights = weights;
    setup.request.activations = activations;
    setup.request.optimizer = optimizer;
    setup.request.loss_chunks = 2;
    setup.request.micro_batch = 2;
    if (status == STATUS_OK)
        status = prediction_make(&p, &setup, &setup.request, false, &diag);
    if (status == STATUS_OK)
        status = alternatives_find(&best, &p, &setup.request, false, &diag);
    if (CHECK_INT(label, status, STATUS_OK)) {
        struct report report = {.prediction = &p,
                                .profile = "published",
                                .best = &best,
                                .total_tokens = 15e12,
                                .price = 2.5};
        report_print(&out, &report);
        if (!CHECK(label, count_lines(out.data) <= 16))
            printf("%s", out.data);
        CHECK(label, strncmp(out.data, p.verdict.fits ? "fits" : "does not fit", 4) == 0);
        double sum = 0;
        for (int i = 0; i < CAUSE_COUNT; i++)
            sum += p.waterfall.cause_s[i];
        CHECK_CLOSE(label, sum, p.sim.step_s, 1e-9);
    } else {
        printf("%s", diag.text);
    }
    text_release(&out);
    prediction_release(&p);
    setup_release(&setup);
    diag_release(&diag);
}

static void a_report_has_at_most_sixteen_lines(void)
{
    check_lines("all on the device", "1x8xa100-80g", CHOICE_WEIGHTS_ZERO3, CHOICE_ACTIVATIONS_FULL,
                CHOICE_OPTIMIZER_DEVICE, 8192);
    check_lines("all offloaded", "2x4xh100", CHOICE_WEIGHTS_HSDP, CHOICE_ACTIVATIONS_OFFLOAD,
                CHOICE_OPTIMIZER_HOST, 65536);
    check_lines("does not fit", "2x4xa100-40g", CHOICE_WEIGHTS_ZERO1, CHOICE_ACTIVATIONS_OFFLOAD,
                CHOICE_OPTIMIZER_HOST, 1 << 22);
}

static const struct check_case cases[] = {
    {"rounded parts add up", rounded_parts_add_up},
    {"times have five digits", times_have_five_digits},
    {"a report has at most sixteen lines", a_report_has_at_most_sixteen_lines},
};
CHECK_MAIN("report", cases)
