#include "schedule/ir/needed.h"

#include <assert.h>
#include <stdlib.h>

static int64_t own_below(const struct needed *n, int64_t position)
{
    return layout_rows_below(n->layout, n->documents, n->context, position);
}

/* Adds the positions that a run of queries sees, which begin no earlier than those of the run before. */
static void add_range(struct needed *n, int64_t begin, int64_t end)
{
    struct needed_range *last = n->count > 0 ? &n->range[n->count - 1] : NULL;
    if (last != NULL && begin <= last->end) {
        last->end = end > last->end ? end : last->end;
        return;
    }
    n->range = heap_grow(n->range, &n->capacity, n->count + 1, sizeof *n->range);
    n->range[n->count++] = (struct needed_range){begin, end, 0};
}

void needed_find(struct needed *n, const struct token_layout *layout,
                 const struct document_list *documents, uint32_t context, int64_t window)
{
    int64_t row = 0, own = layout->tokens / layout->cp;
    n->layout = layout;
    n->documents = documents;
    n->context = context;
    n->count = 0;
    n->rows = 0;
    while (row < own) {
        int64_t first = layout_gathered_in(layout, documents, context, row);
        uint32_t document = document_at(documents, first);
        int64_t begin = document_begin(documents, document),
                end = layout_rows_below(layout, documents, context, documents->end[document]),
                run = layout_run_end(layout, documents, context, row);
        if (window > 0) { /* each run of neighbours has a window of its own */
            if (layout->kind == LAYOUT_STRIPED)
                run = row + 1;
            if (run < end)
                end = run;
            if (first - window + 1 > begin)
                begin = first - window + 1;
        }
        add_range(n, begin, layout_gathered_in(layout, documents, context, end - 1) + 1);
        row = end;
    }
    for (size_t i = 0; i < n->count; i++) {
        struct needed_range *r = &n->range[i];
        r->row = n->rows;
        n->rows += r->end - r->begin - (own_below(n, r->end) - own_below(n, r->begin));
    }
}

void needed_release(struct needed *n)
{
    free(n->range);
    *n = (struct needed){0};
}

int64_t needed_below(const struct needed *n, int64_t position)
{
    size_t low = 0, high = n->count;
    while (low < high) { /* the first range that begins at the position or later */
        size_t middle = low + (high - low) / 2;
        if (n->range[middle].begin < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct needed_range *r = &n->range[low - 1];
    int64_t end = position < r->end ? position : r->end;
    return r->row + end - r->begin - (own_below(n, end) - own_below(n, r->begin));
}

int64_t needed_of(const struct needed *n, uint32_t owner)
{
    int64_t rows = 0;
    for (size_t i = 0; i < n->count && owner != n->context; i++)
        rows += layout_rows_below(n->layout, n->documents, owner, n->range[i].end) -
                layout_rows_below(n->layout, n->documents, owner, n->range[i].begin);
    return rows;
}

struct needed_most needed_most(const struct token_layout *layout,
                               const struct document_list *documents, int64_t window)
{
    struct needed_most most = {0};
    struct needed needed = {0};
    int64_t *sent = heap_zalloc(layout->cp, sizeof *sent);
    for (uint32_t c = 0; c < layout->cp; c++) {
        needed_find(&needed, layout, documents, c, window);
        most.needed = needed.rows > most.needed ? needed.rows : most.needed;
        for (uint32_t owner = 0; owner < layout->cp; owner++)
            sent[owner] += needed_of(&needed, owner);
    }
    for (uint32_t c = 0; c < layout->cp; c++)
        most.sent = sent[c] > most.sent ? sent[c] : most.sent;
    needed_release(&needed);
    free(sent);
    return most;
}

/* Lists the rows that `needed` needs of a rank, in the order of positions: the owner's row of each or, with `places`, its
 * place among all needed rows. Returns their number. */
static int64_t list_rows(const struct needed *n, uint32_t owner, bool places, int64_t *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < n->count && owner != n->context; i++) {
        int64_t row = layout_rows_below(n->layout, n->documents, owner, n->range[i].begin),
                end = layout_rows_below(n->layout, n->documents, owner, n->range[i].end);
        for (; row < end; row++)
            out[count++] =
                places ? needed_below(n, layout_gathered_in(n->layout, n->documents, owner, row))
                       : row;
    }
    return count;
}

void needed_list_sent(struct needed_rows *rows, const struct token_layout *layout,
                      const struct document_list *documents, uint32_t context, int64_t window)
{
    struct needed needed = {0};
    *rows = (struct needed_rows){heap_zalloc(layout->cp + (size_t)1, sizeof *rows->first), NULL};
    for (uint32_t to = 0; to < layout->cp; to++) {
        needed_find(&needed, layout, documents, to, window);
        rows->first[to + 1] = rows->first[to] + needed_of(&needed, context);
        rows->row = heap_realloc(rows->row, (size_t)rows->first[to + 1] + 1, sizeof *rows->row);
        list_rows(&needed, context, false, rows->row + rows->first[to]);
    }
    needed_release(&needed);
}

void needed_list_received(struct needed_rows *rows, const struct token_layout *layout,
                          const struct document_list *documents, uint32_t context, int64_t window)
{
    struct needed needed = {0};
    needed_find(&needed, layout, documents, context, window);
    *rows = (struct needed_rows){heap_zalloc(layout->cp + (size_t)1, sizeof *rows->first),
                                 heap_alloc((size_t)needed.rows + 1, sizeof *rows->row)};
    for (uint32_t from = 0; from < layout->cp; from++)
        rows->first[from + 1] =
            rows->first[from] + list_rows(&needed, from, true, rows->row + rows->first[from]);
    assert(rows->first[layout->cp] == needed.rows);
    needed_release(&needed);
}

void needed_rows_release(struct needed_rows *rows)
{
    free(rows->first);
    free(rows->row);
    *rows = (struct needed_rows){0};
}
