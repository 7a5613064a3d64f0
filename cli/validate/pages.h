/* cli/validate/pages.h: tables of a validation in Markdown documents: accuracy.md, and one page per source below
 * accuracy/.
 *
 * Only the text between "<!-- generated: NAME -->" and "<!-- end -->" is replaced, so a document keeps what people
 * wrote in it; a block without its end is refused. A page that does not exist is created, and a block that it lacks is
 * added at its end. */
#ifndef CLI_VALIDATE_PAGES_H
#define CLI_VALIDATE_PAGES_H

#include "base/diag.h"
#include "models/interval.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"

/* Writes the documents to a folder; either all of them appear or none does. runs: the residuals of whole steps in both
 * validations. from: the measured runs from which intervals are made. */
enum status validation_write_pages(const char *folder, const struct validation *validation,
                                   const struct external_validation *external,
                                   const struct residuals *runs, const struct evidence *from,
                                   struct diag *diag);

#endif
