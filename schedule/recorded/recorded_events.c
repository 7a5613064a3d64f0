/* Functions about one event of a recording: an error message that names it, and its layer. */
#include "schedule/recorded/recorded_parts.h"

#include "base/c_locale.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum status recorded_report_event_error(const struct recorded_schedule_builder *m, uint32_t event,
                                        const char *format, ...)
{
    struct text text = {0};
    char what[512];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    text_printf(&text, "event %" PRIu32 " (%.60s): %s", event, m->recording->event[event].op_name,
                what);
    enum status status = diag_error(m->diag, (struct loc){.name = m->recording->name},
                                    STATUS_BAD_INPUT, "%s", text.data);
    text_release(&text);
    return status;
}

uint16_t recorded_layer_of_event(const struct recorded_schedule_builder *m, uint32_t event)
{
    const struct step_event *e = &m->recording->event[event];
    for (const char *at = m->recording->module[e->module]; *at != '\0';) {
        const size_t size = strcspn(at, ".");
        uint64_t layer;
        if (size > 0 && size < 6 && strspn(at, "0123456789") >= size &&
            parse_u64(at, size, &layer) && layer < IR_NONE16)
            return (uint16_t)layer;
        at += size;
        at += *at == '.';
    }
    return IR_NONE16;
}
