/* The part of CUPTI that the backend calls: records every kernel, copy and fill that is put on an emulated stream
 * other than the legacy stream, and the op, if any, to which it belongs. Records are delivered in buffers of equal
 * slots. Each launch gets one of the four kinds of records that have times, in rotation, whatever it is. */
#include "tests/exec/emulator/emulator.h"
#ifdef HAVE_CUPTI
#include "tests/exec/emulator/stream.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

struct emulated_cupti_faults emulated_cupti_faults;

namespace
{

enum { SLOT = 512 }; /* bytes of a slot; each holds one record */

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

/* A kernel, copy or fill that has run. call: its number, from 1. */
struct Launch {
    uint32_t call;
    uint64_t start, end;
};

/* Says that a launch belongs to the op for which the backend pushed this id. */
struct Tie {
    uint32_t call;
    uint64_t id;
};

std::mutex lock;              /* guards the variables up to `dropped` */
std::vector<Launch> launches; /* those whose records are not delivered yet */
std::vector<Tie> ties;        /* those that are not delivered yet */
uint32_t calls;               /* number of launches */
size_t dropped;               /* number of records that were dropped since the backend last asked */

thread_local std::vector<uint64_t> ids; /* those that the thread has pushed and not popped */
CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
CUpti_TimestampCallbackFunc now;

/* A recorder (stream.hpp): gives the work a number and the open id, and measures it when it runs. */
std::function<void()> record(std::function<void()> work)
{
    std::lock_guard<std::mutex> guard(lock);
    uint32_t call = ++calls;
    if (!ids.empty())
        ties.push_back({call, ids.back()});
    return [call, work = std::move(work)] {
        uint64_t start = now();
        work();
        uint64_t end = now();
        std::lock_guard<std::mutex> inside(lock);
        launches.push_back({call, start, end});
    };
}

CUptiResult register_callbacks(CUpti_BuffersCallbackRequestFunc a,
                               CUpti_BuffersCallbackCompleteFunc b)
{
    request = a;
    complete = b;
    return CUPTI_SUCCESS;
}

CUptiResult register_timestamp(CUpti_TimestampCallbackFunc function)
{
    now = function;
    return CUPTI_SUCCESS;
}

CUptiResult enable(CUpti_ActivityKind)
{
    emulator::set_launch_recorder(record);
    return CUPTI_SUCCESS;
}

/* Appends a slot with a record of this kind. */
template <typename Record>
void put(std::vector<char> &to, CUpti_ActivityKind kind, const Launch &launch)
{
    static_assert(sizeof(Record) <= SLOT, "a record fits its slot");
    Record one;
    memset(&one, 0, sizeof one);
    one.kind = kind;
    one.correlationId = launch.call;
    one.start = launch.start;
    one.end = launch.end;
    to.resize(to.size() + SLOT);
    memcpy(&to[to.size() - SLOT], &one, sizeof one);
}

/* Appends the record of a launch. The faults of single records (emulated_cupti_faults) occur only in launches that
 * belong to an op. */
void append_launch_record(std::vector<char> &to, Launch launch)
{
    static struct emulated_cupti_faults nothing;
    bool tied = false;
    for (const Tie &tie : ties)
        tied = tied || tie.call == launch.call;
    struct emulated_cupti_faults *wrong = tied ? &emulated_cupti_faults : &nothing;
    if (wrong->uncounted_lost_records > 0) {
        wrong->uncounted_lost_records--;
        return;
    }
    if (wrong->dropped_records > 0) {
        wrong->dropped_records--;
        dropped++;
        return;
    }
    if (wrong->untimed_records > 0) {
        wrong->untimed_records--;
        launch.start = launch.end = 0;
    }
    switch (launch.call % 4) {
    case 0:
        return put<kernel_record>(to, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, launch);
    case 1:
        return put<CUpti_ActivityMemcpy5>(to, CUPTI_ACTIVITY_KIND_MEMCPY, launch);
    case 2:
        return put<CUpti_ActivityMemcpyPtoP4>(to, CUPTI_ACTIVITY_KIND_MEMCPY2, launch);
    default:
        return put<CUpti_ActivityMemset4>(to, CUPTI_ACTIVITY_KIND_MEMSET, launch);
    }
}

void append_correlation_record(std::vector<char> &to, const Tie &tie)
{
    CUpti_ActivityExternalCorrelation one;
    memset(&one, 0, sizeof one);
    one.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    one.correlationId = tie.call;
    one.externalId = tie.id;
    to.resize(to.size() + SLOT);
    memcpy(&to[to.size() - SLOT], &one, sizeof one);
}

/* Delivers all records, in as many buffers as they need. With does_flush_fail it fails, and the records are lost. */
CUptiResult deliver_all_records(uint32_t)
{
    std::vector<char> all;
    {
        std::lock_guard<std::mutex> guard(lock);
        for (const Launch &launch : launches)
            append_launch_record(all, launch);
        for (const Tie &tie : ties)
            append_correlation_record(all, tie);
        launches.clear();
        ties.clear();
    }
    if (emulated_cupti_faults.does_flush_fail)
        return CUPTI_ERROR_UNKNOWN;
    if (emulated_cupti_faults.tears_last_record && !all.empty())
        memset(&all[all.size() - SLOT], 0, SLOT);
    for (size_t at = 0; at < all.size();) {
        uint8_t *buffer;
        size_t size, most;
        request(&buffer, &size, &most);
        size_t bytes = all.size() - at < size ? all.size() - at : size / SLOT * SLOT;
        memcpy(buffer, &all[at], bytes);
        complete(nullptr, 0, buffer, size, bytes);
        at += bytes;
    }
    return CUPTI_SUCCESS;
}

CUptiResult next_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record == nullptr ? buffer : reinterpret_cast<uint8_t *>(*record) + SLOT;
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity *>(next);
    return (*record)->kind == CUPTI_ACTIVITY_KIND_INVALID ? CUPTI_ERROR_INVALID_KIND
                                                          : CUPTI_SUCCESS;
}

CUptiResult count_dropped(CUcontext, uint32_t, size_t *count)
{
    std::lock_guard<std::mutex> guard(lock);
    *count = dropped;
    dropped = 0;
    return CUPTI_SUCCESS;
}

CUptiResult push_external_correlation_id(CUpti_ExternalCorrelationKind, uint64_t id)
{
    ids.push_back(id);
    return CUPTI_SUCCESS;
}

CUptiResult pop(CUpti_ExternalCorrelationKind, uint64_t *id)
{
    *id = ids.back();
    ids.pop_back();
    return CUPTI_SUCCESS;
}

CUptiResult get_version(uint32_t *version)
{
    *version = static_cast<uint32_t>(emulator_versions.cupti);
    return CUPTI_SUCCESS;
}

CUptiResult result_string(CUptiResult, const char **words)
{
    *words = "the words of the emulated library";
    return CUPTI_SUCCESS;
}

} // namespace

extern "C" void emulator_use_cupti(void)
{
    static struct cupti table;
    table.cuptiActivityRegisterCallbacks = register_callbacks;
    table.cuptiActivityRegisterTimestampCallback = register_timestamp;
    table.cuptiActivityEnable = enable;
    table.cuptiActivityFlushAll = deliver_all_records;
    table.cuptiActivityGetNextRecord = next_record;
    table.cuptiActivityGetNumDroppedRecords = count_dropped;
    table.cuptiActivityPushExternalCorrelationId = push_external_correlation_id;
    table.cuptiActivityPopExternalCorrelationId = pop;
    table.cuptiGetVersion = get_version;
    table.cuptiGetResultString = result_string;
    cupti_use_table(&table);
}
#endif
