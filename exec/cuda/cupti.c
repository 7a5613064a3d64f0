#include "exec/cuda/cupti.h"

#include "base/arena.h"
#include "exec/cuda/library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the spans of ops, made of CUPTI's records ---- */

static int compare_by_call(const void *a, const void *b)
{
    const struct cupti_op_of_call *x = a, *y = b;
    return x->call_id < y->call_id ? -1 : x->call_id > y->call_id;
}

static int compare_by_op(const void *a, const void *b)
{
    const struct cupti_span *x = a, *y = b;
    return x->op_id < y->op_id ? -1 : x->op_id > y->op_id;
}

/* Widens a span so that it includes another record of the same op. If one of the two has no times, the widened span has
 * none either, which an end before its start shows. */
static void widen_span(struct cupti_span *all, const struct cupti_span *more)
{
    bool known = all->start_s <= all->end_s && more->start_s <= more->end_s;
    all->record_count++;
    if (!known) {
        all->start_s = 1;
        all->end_s = 0;
        return;
    }
    all->start_s = more->start_s < all->start_s ? more->start_s : all->start_s;
    all->end_s = more->end_s > all->end_s ? more->end_s : all->end_s;
}

static struct cupti_span span_of_record(uint64_t id, const struct cupti_record *record)
{
    bool known = record->end_ns > 0 && record->start_ns <= record->end_ns;
    return (struct cupti_span){id, known ? 1e-9 * (double)record->start_ns : 1,
                               known ? 1e-9 * (double)record->end_ns : 0, 1};
}

size_t cupti_join_records_into_spans(struct cupti_record *record, size_t records,
                                     struct cupti_op_of_call *tie, size_t ties,
                                     struct cupti_span *span)
{
    size_t found = 0, spans = 0, spans_with_times = 0;
    if (ties == 0)
        return 0;
    qsort(tie, ties, sizeof *tie, compare_by_call);
    for (size_t i = 0; i < records; i++) {
        const struct cupti_op_of_call key = {record[i].call_id, 0};
        const struct cupti_op_of_call *owner =
            bsearch(&key, tie, ties, sizeof *tie, compare_by_call);
        if (owner != NULL) /* NULL: the launch belongs to no op */
            span[found++] = span_of_record(owner->op_id, &record[i]);
    }
    qsort(span, found, sizeof *span, compare_by_op);
    for (size_t i = 0; i < found; i++) {
        if (spans > 0 && span[spans - 1].op_id == span[i].op_id)
            widen_span(&span[spans - 1], &span[i]);
        else
            span[spans++] = span[i];
    }
    for (size_t i = 0; i < spans; i++)
        if (span[i].start_s <= span[i].end_s)
            span[spans_with_times++] = span[i];
    return spans_with_times;
}

/* ---- recording by CUPTI ---- */

#ifdef HAVE_CUPTI

enum { BUFFER = 8 << 20 };

static const struct cupti *cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cupti_record *record;
static struct cupti_op_of_call *tie;
static size_t records, record_capacity, ties, tie_capacity;
static size_t dropped;         /* records that CUPTI dropped for lack of buffers */
static CUptiResult read_error; /* why the rest of a buffer could not be read */

static void add_record(uint32_t call, uint64_t start_ns, uint64_t end_ns)
{
    if (records == record_capacity) {
        record_capacity = heap_next_capacity(record_capacity, records + 1);
        record = heap_realloc(record, record_capacity, sizeof *record);
    }
    record[records++] = (struct cupti_record){call, start_ns, end_ns};
}

static void add_op_of_call(uint32_t call, uint64_t id)
{
    if (ties == tie_capacity) {
        tie_capacity = heap_next_capacity(tie_capacity, ties + 1);
        tie = heap_realloc(tie, tie_capacity, sizeof *tie);
    }
    tie[ties++] = (struct cupti_op_of_call){call, id};
}

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

static void read_record(const CUpti_Activity *any)
{
    const void *r = any;
    switch (any->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const kernel_record *k = r;
        add_record(k->correlationId, k->start, k->end);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy5 *m = r; /* later versions begin the same */
        add_record(m->correlationId, m->start, m->end);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const CUpti_ActivityMemcpyPtoP4 *m = r;
        add_record(m->correlationId, m->start, m->end);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *m = r;
        add_record(m->correlationId, m->start, m->end);
        break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const CUpti_ActivityExternalCorrelation *e = r;
        add_op_of_call(e->correlationId, e->externalId);
        break;
    }
    /* records of API calls are not read; they are asked for only because CUPTI writes no correlation ids without
     * them */
    default:
        break;
    }
}

static void CUPTIAPI supply_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    void *memory = NULL;
    *most = 0;
    *size = posix_memalign(&memory, 64, BUFFER) == 0 ? BUFFER : 0;
    *buffer = memory;
}

/* Adds the number of records that CUPTI has dropped to `dropped`. CUPTI counts them separately for each queue of
 * buffers. */
static void count_dropped(CUcontext context, uint32_t stream)
{
    size_t more = 0;
    if (cupti->cuptiActivityGetNumDroppedRecords(context, stream, &more) == CUPTI_SUCCESS)
        dropped += more;
}

static void CUPTIAPI read_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t filled)
{
    CUpti_Activity *next = NULL;
    CUptiResult result;
    (void)size;
    pthread_mutex_lock(&lock);
    while ((result = cupti->cuptiActivityGetNextRecord(buffer, filled, &next)) == CUPTI_SUCCESS)
        read_record(next);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED)
        read_error = result;
    count_dropped(context, stream);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static uint64_t CUPTIAPI now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *result_text(CUptiResult result)
{
    const char *words = "?";
    cupti->cuptiGetResultString(result, &words);
    return words;
}

static enum status start_recording(struct diag *diag)
{
    /* the kinds RUNTIME and DRIVER are recorded because CUPTI writes correlation ids only together with such records */
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                               CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMCPY2,
                                               CUPTI_ACTIVITY_KIND_MEMSET,
                                               CUPTI_ACTIVITY_KIND_RUNTIME,
                                               CUPTI_ACTIVITY_KIND_DRIVER,
                                               CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
    CUptiResult result = cupti->cuptiActivityRegisterTimestampCallback(now_ns);
    if (result == CUPTI_SUCCESS)
        result = cupti->cuptiActivityRegisterCallbacks(supply_buffer, read_buffer);
    for (size_t i = 0; i < ARRAY_LEN(kinds) && result == CUPTI_SUCCESS; i++)
        result = cupti->cuptiActivityEnable(kinds[i]);
    return result == CUPTI_SUCCESS ? STATUS_OK
                                   : diag_error(diag, (struct loc){.name = "cuptiActivityEnable"},
                                                STATUS_SYSTEM, "%s", result_text(result));
}

enum status cupti_open(struct diag *diag)
{
    if (cupti != NULL)
        return STATUS_OK;
    cupti = cupti_open_library(diag);
    enum status status = cupti != NULL ? start_recording(diag) : STATUS_SYSTEM;
    if (status != STATUS_OK)
        cupti = NULL;
    return status;
}

int cupti_version(void)
{
    uint32_t version = 0;
    if (cupti != NULL)
        cupti->cuptiGetVersion(&version);
    return (int)version;
}

void cupti_push_op(uint64_t id)
{
    if (cupti != NULL)
        cupti->cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void cupti_pop_op(void)
{
    uint64_t id;
    if (cupti != NULL)
        cupti->cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}

bool cupti_take_spans(struct cupti_span **span, size_t *span_count, char *why)
{
    *span = NULL;
    *span_count = 0;
    if (cupti == NULL)
        return true;
    CUptiResult flushed = cupti->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&lock);
    count_dropped(NULL, 0);
    bool is_complete = flushed == CUPTI_SUCCESS && read_error == CUPTI_SUCCESS && dropped == 0;
    if (flushed != CUPTI_SUCCESS)
        snprintf(why, CUPTI_WHY, "cuptiActivityFlushAll: %s", result_text(flushed));
    else if (read_error != CUPTI_SUCCESS)
        snprintf(why, CUPTI_WHY, "cuptiActivityGetNextRecord: %s", result_text(read_error));
    else if (dropped > 0)
        snprintf(why, CUPTI_WHY, "CUPTI dropped %zu records for want of memory", dropped);
    if (is_complete) {
        *span = heap_zalloc(records + 1, sizeof **span);
        *span_count = cupti_join_records_into_spans(record, records, tie, ties, *span);
    }
    records = ties = dropped = 0;
    read_error = CUPTI_SUCCESS;
    pthread_mutex_unlock(&lock);
    return is_complete;
}

#else

enum status cupti_open(struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = "CUPTI"}, STATUS_BAD_INPUT,
                      "this program was built without CUPTI");
}

int cupti_version(void)
{
    return 0;
}

void cupti_push_op(uint64_t id)
{
    (void)id;
}

void cupti_pop_op(void)
{
}

bool cupti_take_spans(struct cupti_span **span, size_t *spans, char *why)
{
    *span = NULL;
    *spans = 0;
    (void)why;
    return true;
}
#endif
