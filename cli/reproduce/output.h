/* cli/reproduce/output.h: the files that `reproduce` writes for an entry, and the page of several entries. */
#ifndef CLI_REPRODUCE_OUTPUT_H
#define CLI_REPRODUCE_OUTPUT_H

#include "base/text.h"
#include "predict/reproduce/outcome.h"

#include <stdbool.h>

/* Writes NAME.txt into the folder; NAME.csv, if the entry has rows or grids of points; NAME.svg and
 * NAME-dark.svg, if some of its points can be drawn; and a light and a dark picture of each
 * timeline. */
enum status output_write_entry(const struct reproduction *r, size_t entry, const char *folder,
                               struct diag *diag);

/* Writes index.html and states.csv of the entries that are wanted. */
enum status output_write_page(const struct reproduction *r, const bool *wanted, const char *folder,
                              struct diag *diag);

#endif
