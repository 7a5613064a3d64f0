/* The part of NCCL that the backend calls, between processes on one machine: all members of a communicator map one
 * file, which has a mailbox for each pair and direction. Every collective is made of sends and receives on the emulated
 * stream.
 *
 * As in NCCL, the first message from one member to another connects these two, and the first collective connects all
 * members: the host waits in that call until its peers are in theirs. NCCL would also allocate buffers then, so the
 * program ends if this happens after a rank has its arena. With a non-blocking communicator a separate thread does this
 * and makes the launch, so that CUPTI cannot assign it to an op. The program ends if a communicator that was aborted is
 * used. */
#include "tests/exec/emulator/emulator.h"
#ifdef HAVE_NCCL
#include "tests/exec/emulator/numbers.h"
#include "tests/exec/emulator/stream.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <inttypes.h>
#include <memory>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/random.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace
{

enum { RANKS_MAX = 8 };
constexpr size_t PIECE = 1 << 16;

/* Carries messages from one member to another, one piece at a time: the sender writes the next piece when the receiver
 * has taken all that were sent. */
struct Mailbox {
    std::atomic<uint64_t> sent, taken; /* numbers of pieces */
    size_t bytes;                      /* of the piece in data[] */
    char data[PIECE];
};

/* The contents of the file that all members of a communicator share. */
struct Shared {
    std::atomic<uint32_t> come; /* number of members that have joined */
    /* number of members that have reached their first collective */
    std::atomic<uint32_t> collectives;
    /* number of first uses of registered memory, of all members together */
    std::atomic<uint32_t> uses;
    /* [0: the receiver, 1: the sender] [sender] [receiver]: true once that rank has come to connect the two */
    std::atomic<bool> connects[2][RANKS_MAX][RANKS_MAX];
    Mailbox box[RANKS_MAX][RANKS_MAX]; /* [sender] [receiver] */
};

/* The bytes that a rank still has to move to or from a peer. */
struct PendingTransfer {
    int peer;
    bool is_send;
    char *data;
    size_t bytes;
};

} // namespace

struct ncclComm {
    Shared *shared;
    /* the path of the file that `shared` maps; the file is removed when all members have come */
    std::string path;
    int size, rank, device;
    bool blocking;
    /* if it does not block: the ncclResult_t of its last call */
    std::atomic<int> state{ncclSuccess};
    std::atomic<bool> aborted{false};
    bool connected = false; /* to all members, for collectives */
    /* [0: to receive, 1: to send] [peer]: true once the first message has connected the two */
    bool connected_to[2][RANKS_MAX] = {};
    uint64_t issued = 0;           /* number of calls that were put on streams */
    std::atomic<uint64_t> done{0}; /* number of these that have ended */
    uint64_t splits = 0;           /* number of communicators that were split from it */
    std::vector<PendingTransfer>
        group; /* the sends and receives of the open group, which are on `stream` */
    cudaStream_t stream = nullptr;
    const char *registered = nullptr; /* the memory that is registered with it */
    size_t registered_bytes = 0;
    cudaStream_t opening_stream = nullptr; /* of its first collective, before the first step */
    /* the pairs (from, to) of registered memory that a collective has used */
    std::set<std::pair<const void *, const void *>> used;
};

namespace
{

thread_local std::vector<ncclComm *> in_group; /* those with parts in the open group */
thread_local int depth;                        /* number of groups that are open in each other */
/* the other calls of the open group, which call() makes when the group ends */
thread_local std::vector<std::pair<ncclComm *, std::function<ncclResult_t()>>> deferred;

/* Returns the error of a call that EMULATED_NCCL_FAILS names, such as ncclAllReduce; else ncclSuccess. An
 * all-reduce before the step is never refused. */
ncclResult_t refused(const char *call)
{
    const char *fails = getenv("EMULATED_NCCL_FAILS");
    return fails != nullptr && strcmp(fails, call) == 0 ? ncclSystemError : ncclSuccess;
}

/* True if the run is to stop at `where`. With EMULATED_NCCL_STOPS=host or device, a collective of a step never ends:
 * its call does not return (host), or its work on the stream does not end (device). With open, the work of a collective
 * before the step never ends. */
bool must_stop_at(const char *where)
{
    const char *what = getenv("EMULATED_NCCL_STOPS");
    if (what == nullptr)
        return false;
    return emulator_open_arena_count() > 0
               ? strcmp(what, where) == 0
               : strcmp(what, "open") == 0 && strcmp(where, "device") == 0;
}

void abort_if_communicator_aborted(const ncclComm *c)
{
    if (!c->aborted)
        return;
    fprintf(stderr, "emulator: NCCL is called with a communicator that was aborted\n");
    abort();
}

/* Ends the program if a rank has its arena: NCCL would allocate buffers now. */
void abort_if_arena_is_open()
{
    if (emulator_open_arena_count() == 0)
        return;
    fprintf(stderr, "emulator: NCCL takes its buffers when the arena is there\n");
    abort();
}

/* Waits until come() is true. Returns false if the communicator was aborted. */
template <typename F> bool wait_until(const ncclComm *c, F come)
{
    while (!come() && !c->aborted)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return !c->aborted;
}

/* Connects all members. Returns false if the communicator was aborted. */
bool connect_all(ncclComm *c)
{
    if (c->connected)
        return true;
    c->connected = true;
    abort_if_arena_is_open();
    c->shared->collectives++;
    return wait_until(c, [=] { return c->shared->collectives >= (uint32_t)c->size; });
}

/* Connects the member to the peers of the parts. Returns false if the communicator was aborted. */
bool connect_peers_of_transfers(ncclComm *c, const std::vector<PendingTransfer> &parts)
{
    std::vector<std::pair<int, int>> pairs; /* sender, receiver */
    for (const PendingTransfer &p : parts) {
        if (c->connected_to[p.is_send][p.peer])
            continue;
        c->connected_to[p.is_send][p.peer] = true;
        abort_if_arena_is_open();
        int from = p.is_send ? c->rank : p.peer, to = p.is_send ? p.peer : c->rank;
        c->shared->connects[p.is_send][from][to] = true;
        pairs.push_back({from, to});
    }
    for (std::pair<int, int> pair : pairs)
        if (!wait_until(c, [=] {
                return c->shared->connects[0][pair.first][pair.second] &&
                       c->shared->connects[1][pair.first][pair.second];
            }))
            return false;
    return true;
}

/* Does the work of a call: in a group when the group ends; for a communicator that does not block, in another
 * thread. */
ncclResult_t call(ncclComm *c, std::function<ncclResult_t()> work)
{
    if (depth > 0) {
        deferred.push_back({c, std::move(work)});
        return ncclSuccess;
    }
    if (c->blocking)
        return work();
    int device = emulator::current_device();
    c->state = ncclInProgress;
    std::thread([=] {
        emulator::set_current_device(device);
        c->state = work();
    }).detach();
    return ncclInProgress;
}

/* Moves the next piece of a part, and shortens the part by it. Returns false if the peer is not ready. */
bool move_next_piece(ncclComm *c, PendingTransfer &p)
{
    Mailbox &box = p.is_send ? c->shared->box[c->rank][p.peer] : c->shared->box[p.peer][c->rank];
    if (p.is_send) {
        if (box.sent != box.taken)
            return false;
        box.bytes = p.bytes < PIECE ? p.bytes : PIECE;
        memcpy(box.data, p.data, box.bytes);
        p.data += box.bytes;
        p.bytes -= box.bytes;
        box.sent++;
    } else {
        if (box.sent == box.taken)
            return false;
        size_t bytes = box.bytes;
        if (bytes > p.bytes) {
            fprintf(stderr, "emulator: a message of NCCL is longer than its receiver's buffer\n");
            abort();
        }
        memcpy(p.data, box.data, bytes);
        p.data += bytes;
        p.bytes -= bytes;
        box.taken++;
    }
    return true;
}

/* Moves all parts. Parts to one peer move in their order, and so do parts from one peer; those of different peers move
 * at the same time. Stops if the communicator is aborted. */
void move_all_transfers(ncclComm *c, std::vector<PendingTransfer> parts)
{
    bool left = true;
    while (left && !c->aborted) {
        left = false;
        bool moved = false, busy[2][RANKS_MAX] = {};
        for (PendingTransfer &p : parts) {
            if (p.bytes == 0 || busy[p.is_send][p.peer])
                continue;
            busy[p.is_send][p.peer] = true;
            moved |= move_next_piece(c, p);
            left |= p.bytes > 0;
        }
        for (PendingTransfer &p : parts)
            left |= p.bytes > 0;
        if (!moved)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

/* Enqueues a call. Calls on one communicator run in their order, whatever their streams. Any device may be current,
 * but streams and buffers must be on the communicator's device. */
template <typename F>
ncclResult_t submit(ncclComm *c, cudaStream_t stream, const void *from, const void *to, F work)
{
    if (emulator::device_of(stream) != c->device || !emulator::can_device_access(c->device, from) ||
        !emulator::can_device_access(c->device, to))
        return ncclInvalidArgument;
    uint64_t turn = c->issued++;
    emulator::submit_copy(stream, [=] {
        while (c->done != turn && !c->aborted)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (!c->aborted)
            work();
        c->done = turn + 1;
    });
    return ncclSuccess;
}

/* Returns false if the communicator has registered memory and this is other memory, which NCCL leaves undefined. */
bool is_registered(const ncclComm *c, const void *memory)
{
    const char *at = static_cast<const char *>(memory);
    return c->registered == nullptr || at == nullptr ||
           (at >= c->registered && at < c->registered + c->registered_bytes);
}

/* At the first use of a pair of addresses in registered memory, NCCL connects members anew: waits in the call until
 * all have come. Ends the program if that happens in a step. Returns false if the communicator was aborted. */
bool connect_for_registered_memory(ncclComm *c, cudaStream_t stream, const void *from,
                                   const void *to)
{
    if (c->registered == nullptr || !c->used.insert({from, to}).second)
        return true;
    if (stream != c->opening_stream) {
        fprintf(stderr, "emulator: a first use of registered memory connects members in a step\n");
        abort();
    }
    const uint32_t mine = static_cast<uint32_t>(c->used.size()) * static_cast<uint32_t>(c->size);
    c->shared->uses++;
    return wait_until(c, [=] { return c->shared->uses >= mine; });
}

/* Makes a collective whose work is on the stream: connects the members first. */
template <typename F>
ncclResult_t collective(ncclComm *c, cudaStream_t stream, const void *from, const void *to, F work)
{
    abort_if_communicator_aborted(c);
    return call(c, [=]() -> ncclResult_t {
        if (c->opening_stream == nullptr)
            c->opening_stream = stream;
        if (!is_registered(c, from) || !is_registered(c, to))
            return ncclInvalidUsage;
        if (!connect_all(c) || !connect_for_registered_memory(c, stream, from, to) ||
            (must_stop_at("host") && !wait_until(c, [] { return false; })))
            return ncclInternalError;
        return submit(c, stream, from, to, [=] {
            if (must_stop_at("device"))
                (void)wait_until(c, [] { return false; });
            else
                work();
        });
    });
}

[[noreturn]] void no_such_type(ncclDataType_t type)
{
    fprintf(stderr, "emulator: NCCL's type %d is none that it computes with\n", (int)type);
    abort();
}

size_t bytes_of_nccl_type(ncclDataType_t type)
{
    switch (type) {
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclFloat32:
        return 4;
    case ncclFloat64:
        return 8;
    default:
        no_such_type(type);
    }
}

double get(const char *data, ncclDataType_t type, size_t i)
{
    uint16_t half;
    float f;
    int32_t n;
    switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
        memcpy(&half, data + 2 * i, 2);
        return type == ncclBfloat16 ? from_bf16(half) : from_f16(half);
    case ncclInt32:
        memcpy(&n, data + 4 * i, 4);
        return n;
    case ncclFloat32:
        memcpy(&f, data + 4 * i, 4);
        return f;
    default:
        no_such_type(type);
    }
}

void put(char *data, ncclDataType_t type, size_t i, double x)
{
    uint16_t half = type == ncclBfloat16 ? to_bf16((float)x) : to_f16((float)x);
    int32_t n = (int32_t)x;
    float f = (float)x;
    switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
        memcpy(data + 2 * i, &half, 2);
        break;
    case ncclInt32:
        memcpy(data + 4 * i, &n, 4);
        break;
    case ncclFloat32:
        memcpy(data + 4 * i, &f, 4);
        break;
    default:
        no_such_type(type);
    }
}

/* Sends `bytes` bytes to each member, those for rank r from from + step * r, and returns what all members sent to this
 * one, in the order of ranks. */
std::vector<char> exchange(ncclComm *c, const char *from, size_t step, size_t bytes)
{
    std::vector<char> all(bytes * (size_t)c->size);
    std::vector<PendingTransfer> parts;
    for (int r = 0; r < c->size; r++) {
        char *send = const_cast<char *>(from) + step * (size_t)r;
        if (r == c->rank) {
            memcpy(all.data() + bytes * (size_t)r, send, bytes);
            continue;
        }
        parts.push_back({r, true, send, bytes});
        parts.push_back({r, false, all.data() + bytes * (size_t)r, bytes});
    }
    move_all_transfers(c, parts);
    return all;
}

/* Reduces `count` numbers of each member into `to`. step: as in exchange(), 0 if all members get the same. */
void reduce(ncclComm *c, const char *from, size_t step, char *to, size_t count, ncclDataType_t type,
            ncclRedOp_t op)
{
    std::vector<char> all = exchange(c, from, step, count * bytes_of_nccl_type(type));
    for (size_t i = 0; i < count; i++) {
        double x = get(all.data(), type, i);
        for (int r = 1; r < c->size; r++) {
            double y = get(all.data() + (size_t)r * count * bytes_of_nccl_type(type), type, i);
            x = op == ncclMax ? (y > x ? y : x) : x + y;
        }
        put(to, type, i, x);
    }
}

ncclResult_t get_version(int *version)
{
    *version = emulator_versions.nccl;
    return ncclSuccess;
}

/* The id is the path of a file that does not exist yet, in the folder EMULATED_NCCL_FILES or in /dev/shm. Its name is
 * random, since a program that was killed may have left its file, and process ids come back. */
ncclResult_t get_unique_id(ncclUniqueId *id)
{
    const char *folder = getenv("EMULATED_NCCL_FILES");
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return ncclSystemError;
    memset(id, 0, sizeof *id);
    int length = snprintf(id->internal, sizeof id->internal, "%s/longhaul-nccl-%016" PRIx64,
                          folder != nullptr ? folder : "/dev/shm", number);
    return (size_t)length < sizeof id->internal ? refused("ncclGetUniqueId") : ncclSystemError;
}

const char *error_string(ncclResult_t)
{
    return "unhandled system error of the emulated library";
}

const char *last_error(ncclComm_t)
{
    return "the words of the emulated library";
}

/* Maps the file at `path`, which all `size` members name, and waits until all of them have. */
ncclResult_t join_communicator(ncclComm_t *comm, const std::string &path, int size, int rank,
                               bool blocking)
{
    int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || size > RANKS_MAX || ftruncate(file, sizeof(Shared)) != 0)
        return ncclSystemError;
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return ncclSystemError;
    ncclComm *c = new ncclComm;
    c->shared = static_cast<Shared *>(memory);
    c->path = path;
    c->size = size;
    c->rank = rank;
    c->device = emulator::current_device();
    c->blocking = blocking;
    emulator::touch();
    if (!c->blocking)
        *comm = c;
    ncclResult_t result = call(c, [=]() -> ncclResult_t {
        c->shared->come++;
        bool all = wait_until(c, [=] { return c->shared->come >= (uint32_t)c->size; });
        unlink(c->path.c_str());
        return all ? ncclSuccess : ncclInternalError;
    });
    if (result == ncclSuccess)
        *comm = c;
    return result;
}

/* With EMULATED_NCCL_ABSENT=1 rank 1 never joins the communicator of all. */
ncclResult_t comm_init(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    const char *absent = getenv("EMULATED_NCCL_ABSENT");
    while (absent != nullptr && strtol(absent, nullptr, 10) == rank)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    if (refused("ncclCommInitRankConfig") != ncclSuccess)
        return ncclSystemError;
    return join_communicator(comm, id.internal, size, rank, config->blocking != 0);
}

/* All members of the parent call it: each says its colour and key, and joins those of its colour, in order of keys.
 * With EMULATED_NCCL_LATE=1 rank 1 of the parent never comes to a split. */
ncclResult_t comm_split(ncclComm_t parent, int color, int key, ncclComm_t *comm,
                        ncclConfig_t *config)
{
    const char *late = getenv("EMULATED_NCCL_LATE");
    while (late != nullptr && strtol(late, nullptr, 10) == parent->rank)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    abort_if_communicator_aborted(parent);
    if (refused("ncclCommSplit") != ncclSuccess)
        return ncclSystemError;
    const int own[2] = {color, key};
    std::vector<char> said = exchange(parent, reinterpret_cast<const char *>(own), 0, sizeof own);
    if (parent->aborted)
        return ncclInternalError;
    int size = 0, rank = 0;
    for (int r = 0; r < parent->size; r++) {
        int other[2];
        memcpy(other, said.data() + sizeof other * (size_t)r, sizeof other);
        size += other[0] == color;
        rank += other[0] == color && (other[1] < key || (other[1] == key && r < parent->rank));
    }
    *comm = nullptr;
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    return join_communicator(
        comm, parent->path + "-" + std::to_string(parent->splits++) + "-" + std::to_string(color),
        size, rank, config->blocking != 0);
}

ncclResult_t comm_abort(ncclComm_t comm)
{
    abort_if_communicator_aborted(comm);
    unlink(comm->path.c_str());
    /* it is not freed, since work that is queued on a stream still reads it */
    comm->aborted = true;
    return ncclSuccess;
}

ncclResult_t mem_alloc(void **memory, size_t bytes)
{
    ncclResult_t result = refused("ncclMemAlloc");
    return result != ncclSuccess                      ? result
           : cudaMalloc(memory, bytes) != cudaSuccess ? ncclUnhandledCudaError
                                                      : ncclSuccess;
}

ncclResult_t mem_free(void *memory)
{
    return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t comm_register_memory(ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    abort_if_communicator_aborted(comm);
    if (refused("ncclCommRegister") != ncclSuccess)
        return ncclSystemError;
    comm->registered = static_cast<const char *>(memory);
    comm->registered_bytes = bytes;
    *handle = comm;
    return ncclSuccess;
}

ncclResult_t comm_deregister(ncclComm_t comm, void *handle)
{
    if (handle != comm || comm->registered == nullptr)
        return ncclInvalidArgument;
    comm->registered = nullptr;
    return ncclSuccess;
}

ncclResult_t comm_destroy(ncclComm_t comm)
{
    if (comm->registered != nullptr) {
        fprintf(stderr, "emulator: a communicator of NCCL is destroyed with registered memory\n");
        abort();
    }
    munmap(comm->shared, sizeof(Shared));
    delete comm;
    return ncclSuccess;
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error)
{
    abort_if_communicator_aborted(comm);
    *error = static_cast<ncclResult_t>(comm->state.load());
    return ncclSuccess;
}

/* Between group_start() and group_end(), calls are only noted. The outermost group_end() makes them. */
ncclResult_t group_start()
{
    depth++;
    return ncclSuccess;
}

ncclResult_t group_end()
{
    if (--depth > 0)
        return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    for (auto &one : deferred)
        if (result == ncclSuccess)
            result = call(one.first, std::move(one.second));
    deferred.clear();
    for (ncclComm *c : in_group) {
        std::vector<PendingTransfer> parts;
        parts.swap(c->group);
        /* Of the parts with the rank itself as the peer, the n-th send goes to the n-th receive. */
        std::vector<PendingTransfer> own[2], others; /* own: [0] receives, [1] sends */
        cudaStream_t stream = c->stream;
        for (PendingTransfer &p : parts)
            (p.peer == c->rank ? own[p.is_send] : others).push_back(p);
        bool reached = true;
        for (PendingTransfer &p : parts)
            reached = reached && emulator::can_device_access(c->device, p.data);
        if (!reached)
            result = ncclInvalidArgument;
        if (result != ncclSuccess)
            break;
        std::vector<PendingTransfer> takes = own[0], gives = own[1];
        result = call(c, [=]() -> ncclResult_t {
            if (!connect_peers_of_transfers(c, others))
                return ncclInternalError;
            return submit(c, stream, nullptr, nullptr, [=] {
                for (size_t i = 0; i < takes.size() && i < gives.size(); i++)
                    memmove(takes[i].data, gives[i].data, gives[i].bytes);
                move_all_transfers(c, others);
            });
        });
    }
    in_group.clear();
    return result;
}

/* Adds a send or a receive to the open group, or makes it in a group of its own. */
ncclResult_t add_transfer_to_open_group(ncclComm *c, PendingTransfer part, cudaStream_t stream)
{
    abort_if_communicator_aborted(c);
    if (!is_registered(c, part.data))
        return ncclInvalidUsage;
    if (c->group.empty())
        in_group.push_back(c);
    c->stream = stream;
    c->group.push_back(part);
    if (depth > 0)
        return ncclSuccess;
    depth = 1;
    return group_end();
}

ncclResult_t send(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                  cudaStream_t stream)
{
    char *bytes = static_cast<char *>(const_cast<void *>(data));
    return add_transfer_to_open_group(c, {peer, true, bytes, count * bytes_of_nccl_type(type)},
                                      stream);
}

ncclResult_t recv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                  cudaStream_t stream)
{
    return add_transfer_to_open_group(
        c, {peer, false, static_cast<char *>(data), count * bytes_of_nccl_type(type)}, stream);
}

ncclResult_t all_gather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t c,
                        cudaStream_t stream)
{
    return collective(c, stream, from, to, [=] {
        std::vector<char> all =
            exchange(c, static_cast<const char *>(from), 0, count * bytes_of_nccl_type(type));
        memcpy(to, all.data(), all.size());
    });
}

ncclResult_t all_reduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    if (emulator_open_arena_count() > 0 && refused("ncclAllReduce") != ncclSuccess)
        return ncclSystemError;
    return collective(c, stream, from, to, [=] {
        reduce(c, static_cast<const char *>(from), 0, static_cast<char *>(to), count, type, op);
    });
}

ncclResult_t reduce_scatter(const void *from, void *to, size_t count, ncclDataType_t type,
                            ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    return collective(c, stream, from, to, [=] {
        reduce(c, static_cast<const char *>(from), count * bytes_of_nccl_type(type),
               static_cast<char *>(to), count, type, op);
    });
}

ncclResult_t reduce_to_root(const void *from, void *to, size_t count, ncclDataType_t type,
                            ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream)
{
    return collective(c, stream, from, to, [=] {
        std::vector<char> nobody(c->rank == root ? 0 : count * bytes_of_nccl_type(type));
        reduce(c, static_cast<const char *>(from), 0,
               c->rank == root ? static_cast<char *>(to) : nobody.data(), count, type, op);
    });
}

ncclResult_t broadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                       ncclComm_t c, cudaStream_t stream)
{
    return collective(c, stream, from, to, [=] {
        size_t bytes = count * bytes_of_nccl_type(type);
        std::vector<PendingTransfer> parts;
        if (c->rank != root)
            parts.push_back({root, false, static_cast<char *>(to), bytes});
        for (int r = 0; r < c->size && c->rank == root; r++)
            if (r != root)
                parts.push_back({r, true, static_cast<char *>(const_cast<void *>(from)), bytes});
        if (c->rank == root && to != from)
            memcpy(to, from, bytes);
        move_all_transfers(c, parts);
    });
}

} // namespace

extern "C" void emulator_use_nccl(void)
{
    static struct nccl table;
    table.ncclGetVersion = get_version;
    table.ncclGetUniqueId = get_unique_id;
    table.ncclGetErrorString = error_string;
    table.ncclGetLastError = last_error;
    table.ncclCommInitRankConfig = comm_init;
    table.ncclCommSplit = comm_split;
    table.ncclCommDestroy = comm_destroy;
    table.ncclCommAbort = comm_abort;
    table.ncclCommGetAsyncError = async_error;
    table.ncclGroupStart = group_start;
    table.ncclGroupEnd = group_end;
    table.ncclAllGather = all_gather;
    table.ncclAllReduce = all_reduce;
    table.ncclReduce = reduce_to_root;
    table.ncclBroadcast = broadcast;
    table.ncclReduceScatter = reduce_scatter;
    table.ncclSend = send;
    table.ncclRecv = recv;
    nccl_use_table(&table);
    static const struct nccl_registration registration = {mem_alloc, mem_free, comm_register_memory,
                                                          comm_deregister};
    nccl_registration_use_table(&registration);
}
#endif
