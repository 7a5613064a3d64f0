#include "cli/report/report.h"

#include <math.h>

struct report_time_format report_time_format_for(double whole_s)
{
    static const struct report_time_format units[] = {
        {1, 3, "s"}, {1e-3, 3, "ms"}, {1e-6, 3, "us"}};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(units) && whole_s < units[i].seconds_per_unit)
        i++;
    struct report_time_format time_format = units[i];
    double limit = 100 * time_format.seconds_per_unit;
    while (whole_s >= limit && time_format.decimals > 0) {
        limit *= 10;
        time_format.decimals--;
    }
    return time_format;
}

void report_round_parts(const double *part_s, size_t count, double whole_s,
                        struct report_time_format time_format, long long *rounded)
{
    double step = time_format.seconds_per_unit / pow(10, time_format.decimals);
    long long whole = llround(whole_s / step), sum = 0;
    for (size_t i = 0; i < count; i++) {
        rounded[i] = (long long)floor(part_s[i] / step);
        sum += rounded[i];
    }
    for (; sum < whole; sum++) { /* the largest remainder first */
        size_t most = 0;
        for (size_t i = 1; i < count; i++)
            if (part_s[i] / step - (double)rounded[i] > part_s[most] / step - (double)rounded[most])
                most = i;
        rounded[most]++;
    }
}

void report_put_time(struct text *out, double seconds, double whole_s)
{
    struct report_time_format time_format = report_time_format_for(whole_s);
    text_printf(out, "%.*f %s", time_format.decimals, seconds / time_format.seconds_per_unit,
                time_format.name);
}

void report_put_piece_after_comma(struct text *line, struct text *piece)
{
    if (line->size > 0)
        text_puts(line, ", ");
    text_append(line, piece->data, piece->size);
    piece->size = 0;
}
