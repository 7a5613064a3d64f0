/* tests/cli/test_svg.c: a drawing of gnuplot's becomes a part of a page whose tags are closed as often as opened. */
#include "cli/page/svg.h"

#include "tests/check.h"

#include <string.h>

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void every_group_is_closed(void)
{
    static const struct {
        const char *label;
        size_t depth, written;
    } rows[] = {
        {"one group", 1, 1},
        {"as deep as is counted", 64, 64},
        {"deeper", 65, 64},
        {"much deeper", 200, 64},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text svg = {0}, out = {0};
        text_puts(&svg, "<svg viewBox=\"0 0 9 9\">");
        for (size_t g = 0; g < rows[i].depth; g++)
            text_puts(&svg, "<g opacity=\"0.5\">");
        text_puts(&svg, "<circle r='1'/>");
        for (size_t g = 0; g < rows[i].depth; g++)
            text_puts(&svg, "</g>");
        text_puts(&svg, "</svg>");
        svg_put_shortened(&out, svg.data, 1);
        CHECK_INT(rows[i].label, (int64_t)count_of(out.data, "<g "), (int64_t)rows[i].written);
        CHECK_INT(rows[i].label, (int64_t)count_of(out.data, "</g>"), (int64_t)rows[i].written);
        CHECK_INT(rows[i].label, (int64_t)count_of(out.data, "<circle"), 1);
        text_release(&svg);
        text_release(&out);
    }
}

static const struct check_case cases[] = {
    {"every group is closed", every_group_is_closed},
};
CHECK_MAIN("svg", cases)
