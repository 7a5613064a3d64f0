/* cli/page/values.h: values of JSON that the program wrote, for pages: what is missing is 0 or "". */
#ifndef CLI_PAGE_VALUES_H
#define CLI_PAGE_VALUES_H

#include "base/json.h"

double page_get_number_or_0(struct json_node object, const char *key);
const char *page_get_text_or_empty(struct json_node object, const char *key);

#endif
