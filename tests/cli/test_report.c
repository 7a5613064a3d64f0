/* tests/cli/test_report.c: the screen of `predict`: commands that can be pasted, rounded parts that add up to the
 * printed whole, and no more lines than a screen has. */
#include "cli/report/report.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

/* The printed parts of a time add up to the printed whole, for random parts. */
static void rounded_time_parts_sum_to_the_total(void)
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
        struct report_time_format time = report_time_format_for(whole);
        long long rounded[13], sum = 0;
        report_round_parts(part, count, whole, time, rounded);
        double unit = time.seconds_per_unit / pow(10, time.decimals);
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
        struct report_time_format time = report_time_format_for(times[i].seconds);
        char text[64];
        snprintf(text, sizeof text, "%.*f %s", time.decimals,
                 times[i].seconds / time.seconds_per_unit, time.name);
        CHECK_TEXT("time", text, times[i].text);
    }
}

/* Returns the number of lines of a text and checks that none is wider than `width`. */
static size_t count_lines(const char *label, const char *text, size_t width)
{
    size_t count = 0;
    for (; *text != '\0'; text += text[0] == '\n') {
        size_t size = strcspn(text, "\n");
        if (!CHECK(label, size <= width))
            printf("%.*s\n", (int)size, text);
        text += size;
        count++;
    }
    return count;
}

static void check_report_fits_screen(const char *label, const char *cluster, int weights,
                                     int activations, int optimizer, int64_t seq)
{
    struct setup setup = {0};
    struct diag diag = {0};
    struct prediction p = {0};
    struct alternative best = {0};
    struct text out = {0};
    enum status status = setup_load_model(&setup, "llama3-8b", NULL, "layers=2", &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, cluster, 0, 0, &diag);
    setup_leave_request_open(&setup);
    setup.request.seq = seq;
    setup.request.weights = weights;
    setup.request.activations = activations;
    setup.request.optimizer = optimizer;
    setup.request.loss_chunks = 2;
    setup.request.micro_batch = 2;
    if (status == STATUS_OK)
        status = prediction_make(&p, &(struct prediction_question){.setup = &setup}, &diag);
    if (status == STATUS_OK)
        status = alternatives_find_best(&best, &p, &diag);
    if (CHECK_INT(label, status, STATUS_OK)) {
        struct report report = {.prediction = &p,
                                .profile = "published",
                                .best_alternative = &best,
                                .training_run_tokens = 15e12,
                                .price_per_gpu_hour = 2.5,
                                .command = "longhaul predict --model llama3-8b --seq 8K",
                                .plan_command = "longhaul plan --model llama3-8b --seq 8K"};
        for (size_t width = 60; width <= 80; width += 20) {
            const struct screen screen = {.out = &out, .width = width};
            out.size = 0;
            report_print(&screen, &report);
            if (!CHECK(label, count_lines(label, out.data, width) <= (width < 80 ? 60 : 45)))
                printf("%s", out.data);
            CHECK(label, strncmp(out.data, p.verdict.fits ? "Fits" : "Does not fit", 4) == 0);
        }
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

static void a_report_fits_a_screen(void)
{
    check_report_fits_screen("all on the device", "1x8xa100-80g", CHOICE_WEIGHTS_ZERO3,
                             CHOICE_ACTIVATIONS_FULL, CHOICE_OPTIMIZER_DEVICE, 8192);
    check_report_fits_screen("all offloaded", "2x4xh100", CHOICE_WEIGHTS_HSDP,
                             CHOICE_ACTIVATIONS_OFFLOAD, CHOICE_OPTIMIZER_HOST, 65536);
    check_report_fits_screen("does not fit", "2x4xa100-40g", CHOICE_WEIGHTS_ZERO1,
                             CHOICE_ACTIVATIONS_OFFLOAD, CHOICE_OPTIMIZER_HOST, 1 << 22);
}

static const struct {
    const char *command, *options, *both;
} commands[] = {
    {"longhaul predict --model a --seq 1K", "--zero 3",
     "longhaul predict --model a --seq 1K --zero 3"},
    {"longhaul predict --zero 1 --shard 4 --seq 1K", "--zero 3",
     "longhaul predict --seq 1K --zero 3"},
    {"longhaul predict --weights zero1 --compile --seq 1K", "--zero 3",
     "longhaul predict --compile --seq 1K --zero 3"},
    {"longhaul predict --activations=full 'a b.ir'", "--checkpoint none --loss-chunks 8",
     "longhaul predict 'a b.ir' --checkpoint none --loss-chunks 8"},
    {"longhaul predict --loss-chunks 8", "--loss-chunks 64", "longhaul predict --loss-chunks 64"},
};

static void printed_command_replaces_old_option(void)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct text out = {0};
        report_put_command_with_options(&out, commands[i].command, commands[i].options);
        CHECK_TEXT(commands[i].command, out.data, commands[i].both);
        text_release(&out);
    }
}

static void small_bars_are_summed(void)
{
    struct text out = {0};
    const struct screen screen = {.out = &out};
    struct screen_bar few[] = {{"a", 1}, {"b", 98.5}, {"c", 0.5}, {"d", 0}};
    struct screen_bar one[] = {{"a", 1.5}, {"b", 98.5}};
    struct screen_bar many[] = {{"a", 10}, {"b", 10}, {"c", 10}, {"d", 10},
                                {"e", 10}, {"f", 10}, {"g", 40}};
    screen_put_bars(&screen, few, 4, 100, report_put_time, false);
    CHECK("b first", strncmp(out.data, "  b ", 4) == 0);
    CHECK("a and c are other",
          strstr(out.data, "\n  other") != NULL && strstr(out.data, "\n  a") == NULL);
    CHECK("other", strstr(out.data, "1.50 s") != NULL);
    out.size = 0;
    screen_put_bars(&screen, few, 4, 100, report_put_time, true);
    CHECK("all", strstr(out.data, "\n  c ") != NULL && strstr(out.data, "other") == NULL);
    out.size = 0;
    screen_put_bars(&screen, one, 2, 100, report_put_time, false);
    CHECK("one alone keeps its name", strstr(out.data, "\n  a ") != NULL);
    out.size = 0;
    screen_put_bars(&screen, many, 7, 100, report_put_time, false);
    CHECK("two after the fifth", strstr(out.data, "20.00 s") != NULL);
    text_release(&out);
}

static void commands_can_be_pasted(void)
{
    struct text out = {0};
    const struct screen narrow = {.out = &out, .width = 40}, pipe = {.out = &out};
    const char *command =
        "longhaul predict --model 'my own model.json' --cluster dgx-h100 --seq 128K";
    screen_put_command(&pipe, command);
    CHECK_TEXT("one line", out.data + 2,
               "longhaul predict --model 'my own model.json' "
               "--cluster dgx-h100 --seq 128K\n");
    out.size = 0;
    screen_put_command(&narrow, command);
    CHECK_TEXT("continued", out.data,
               "  longhaul predict \\\n    --model 'my own model.json' \\\n"
               "    --cluster dgx-h100 --seq 128K\n");
    text_release(&out);
}

static const struct check_case cases[] = {
    {"a new option takes the place of the old", printed_command_replaces_old_option},
    {"small bars are summed", small_bars_are_summed},
    {"commands can be pasted", commands_can_be_pasted},
    {"rounded parts add up", rounded_time_parts_sum_to_the_total},
    {"times have five digits", times_have_five_digits},
    {"a report fits a screen", a_report_fits_a_screen},
};
CHECK_MAIN("report", cases)
