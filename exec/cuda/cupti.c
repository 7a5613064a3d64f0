#include "exec/cuda/cupti.h"

#include "base/arena.h"
#include "exec/cuda/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- joining ---- */

static int by_call(const void *a, const void *b)
{
    const struct cupti_tie *x = a, *y = b;
    return x->call < y->call ? -1 : x->call > y->call;
}

static int by_id(const void *a, const void *b)
{
    const struct cupti_span *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

size_t cupti_join(struct cupti_record *record, size_t records, struct cupti_tie *tie, size_t ties,
                  struct cupti_span *span)
{
    size_t found = 0, spans = 0;
    if (ties == 0)
        return 0;
    qsort(tie, ties, sizeof *tie, by_call);
    for (size_t i = 0; i < records; i++) {
        const struct cupti_tie key = {record[i].call, 0};
        const struct cupti_tie *owner = bsearch(&key, tie, ties, sizeof *tie, by_call);
        if (owner != NULL) /* or a launch of nobody's */
            span[found++] = (struct cupti_span){owner->id, 1e-9 * (double)record[i].start_ns,
                                                1e-9 * (double)record[i].end_ns, 1};
    }
    qsort(span, found, sizeof *span, by_id);
    for (size_t i = 0; i < found; i++) {
        struct cupti_span *last = spans > 0 ? &span[spans - 1] : NULL;
        if (last == NULL || last->id != span[i].id) {
            span[spans++] = span[i];
            continue;
        }
        last->start_s = span[i].start_s < last->start_s ? span[i].start_s : last->start_s;
        last->end_s = span[i].end_s > last->end_s ? span[i].end_s : last->end_s;
        last->records++;
    }
    return spans;
}

#ifdef HAVE_CUPTI
#include <cupti.h>

enum { BUFFER = 8 << 20 };

#define CUPTI_FUNCTIONS(F)                                                                         \
    F(cuptiActivityRegisterCallbacks)                                                              \
    F(cuptiActivityRegisterTimestampCallback)                                                      \
    F(cuptiActivityEnable)                                                                         \
    F(cuptiActivityFlushAll)                                                                       \
    F(cuptiActivityGetNextRecord)                                                                  \
    F(cuptiActivityPushExternalCorrelationId)                                                      \
    F(cuptiActivityPopExternalCorrelationId)                                                       \
    F(cuptiGetResultString)

static struct {
    CUPTI_FUNCTIONS(LIBRARY_MEMBER)
} cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cupti_record *record;
static struct cupti_tie *tie;
static size_t records, record_capacity, ties, tie_capacity;
static bool is_open;

static void add_record(uint32_t call, uint64_t start_ns, uint64_t end_ns)
{
    if (records == record_capacity) {
        record_capacity = heap_next_capacity(record_capacity, records + 1);
        record = heap_realloc(record, record_capacity, sizeof *record);
    }
    record[records++] = (struct cupti_record){call, start_ns, end_ns};
}

static void add_tie(uint32_t call, uint64_t id)
{
    if (ties == tie_capacity) {
        tie_capacity = heap_next_capacity(tie_capacity, ties + 1);
        tie = heap_realloc(tie, tie_capacity, sizeof *tie);
    }
    tie[ties++] = (struct cupti_tie){call, id};
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
        add_tie(e->correlationId, e->externalId);
        break;
    }
    default: /* calls: their records are there only so that the ties are */
        break;
    }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    void *memory = NULL;
    *most = 0;
    *size = posix_memalign(&memory, 64, BUFFER) == 0 ? BUFFER : 0;
    *buffer = memory;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t filled)
{
    CUpti_Activity *next = NULL;
    (void)context;
    (void)stream;
    (void)size;
    pthread_mutex_lock(&lock);
    while (cupti.cuptiActivityGetNextRecord(buffer, filled, &next) == CUPTI_SUCCESS)
        read_record(next);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static uint64_t CUPTIAPI now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static enum status load(struct diag *diag)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
#define NAME_OF(name) #name,
    static const char *const functions[] = {CUPTI_FUNCTIONS(NAME_OF)};
    void *library = library_open(names, ARRAY_LEN(names), CUDA_LIBRARY_DIR, diag);
    for (size_t i = 0; i < ARRAY_LEN(functions) && library != NULL; i++) {
        void *found = library_find(library, names[0], functions[i], diag);
        if (found == NULL)
            return STATUS_SYSTEM;
        memcpy((char *)&cupti + i * sizeof found, &found, sizeof found);
    }
    return library != NULL ? STATUS_OK : STATUS_SYSTEM;
}

static enum status start(struct diag *diag)
{
    /* The two kinds of calls are wanted because ties are written beside their records alone. */
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                               CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMCPY2,
                                               CUPTI_ACTIVITY_KIND_MEMSET,
                                               CUPTI_ACTIVITY_KIND_RUNTIME,
                                               CUPTI_ACTIVITY_KIND_DRIVER,
                                               CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
    CUptiResult result = cupti.cuptiActivityRegisterTimestampCallback(now_ns);
    if (result == CUPTI_SUCCESS)
        result = cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    for (size_t i = 0; i < ARRAY_LEN(kinds) && result == CUPTI_SUCCESS; i++)
        result = cupti.cuptiActivityEnable(kinds[i]);
    const char *words = "?";
    if (result == CUPTI_SUCCESS)
        return STATUS_OK;
    cupti.cuptiGetResultString(result, &words);
    return diag_error(diag, (struct loc){.name = "cuptiActivityEnable"}, STATUS_SYSTEM, "%s",
                      words);
}

enum status cupti_open(struct diag *diag)
{
    if (is_open)
        return STATUS_OK;
    enum status status = load(diag);
    if (status == STATUS_OK)
        status = start(diag);
    is_open = status == STATUS_OK;
    return status;
}

void cupti_push(uint64_t id)
{
    if (is_open)
        cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void cupti_pop(void)
{
    uint64_t id;
    if (is_open)
        cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}

size_t cupti_take(struct cupti_span **span)
{
    *span = NULL;
    if (!is_open)
        return 0;
    cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&lock);
    *span = heap_zalloc(records + 1, sizeof **span);
    size_t spans = cupti_join(record, records, tie, ties, *span);
    records = ties = 0;
    pthread_mutex_unlock(&lock);
    return spans;
}

#else

enum status cupti_open(struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = "CUPTI"}, STATUS_BAD_INPUT,
                      "this program was built without it");
}

void cupti_push(uint64_t id)
{
    (void)id;
}

void cupti_pop(void)
{
}

size_t cupti_take(struct cupti_span **span)
{
    *span = NULL;
    return 0;
}
#endif
