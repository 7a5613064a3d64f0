/* tests/fuzz/fuzz_step_recording.c: whatever the text, either a recorded step is read, of which a schedule is made that
 * can be verified, or there is exactly one message. */
#include "schedule/recorded/recorded.h"
#include "schedule/verify/verify.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct step_recording recording = {0};
    struct ir ir = {0};
    struct diag diag = {0};
    enum status status =
        step_recording_parse(&recording, "fuzz.json", (const char *)data, size, &diag);
    if (status == STATUS_OK) {
        step_recording_peak_bytes(&recording);
        status = recorded_make_schedule(&ir, &recording, 1, NULL, &diag);
    }
    assert(diag.error_count == (status != STATUS_OK));
    if (status == STATUS_OK)
        verify(&ir, NULL, "fuzz.json", NULL, NULL);
    ir_release(&ir);
    step_recording_release(&recording);
    diag_release(&diag);
    return 0;
}
