/* The list of a run's communicators, the guard of calls on them, and memory that NCCL allocates for registration. */
#include "exec/cuda/nccl_links.h"

#include <stdlib.h>
#include <time.h>

#ifdef HAVE_NCCL
enum { LEAVE_S = 1 };

/* ---- the list of links ---- */

static struct nccl_link *find_link(struct nccl_links *l, uint32_t group, uint32_t channel,
                                   int64_t rank_shift)
{
    for (uint32_t i = 0; i < l->link_count; i++) {
        struct nccl_link *link = &l->links[i];
        if (link->group == group && link->channel == channel && link->rank_shift == rank_shift)
            return link;
    }
    return NULL;
}

/* Returns by how many ranks along the group the message of a SEND or RECV moves: negative towards lower ranks. Returns
 * 0 for other ops. */
static int64_t rank_shift_of(const struct work *work)
{
    return work->kind == WORK_SEND ? work->p2p.by : work->kind == WORK_RECV ? -work->p2p.by : 0;
}

static uint32_t channel_of(const struct work *work)
{
    return rank_shift_of(work) != 0 ? (uint32_t)work->p2p.channel : 0;
}

struct nccl_link *nccl_find_link(struct nccl_links *links, const struct work *work)
{
    return find_link(links, (uint32_t)work_comm_group(work), channel_of(work), rank_shift_of(work));
}

struct nccl_link *nccl_find_barrier_link(struct nccl_links *links, uint32_t group)
{
    return find_link(links, group, 0, NCCL_SHIFT_OF_BARRIERS);
}

static void add_link(struct nccl_links *l, struct nccl_link link)
{
    if (find_link(l, link.group, link.channel, link.rank_shift) != NULL)
        return;
    if (l->link_count == l->capacity) {
        l->capacity = (uint32_t)heap_next_capacity(l->capacity, l->link_count + 1);
        l->links = heap_realloc(l->links, l->capacity, sizeof *l->links);
    }
    l->links[l->link_count++] = link;
}

void nccl_list_links(struct nccl_links *l, const struct exec_run *run)
{
    const struct ir *ir = run->ir;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        bool barrier = work->kind == WORK_BARRIER;
        if (work_kind_info((enum work_kind)work->kind)->stream != STREAM_COMM && !barrier)
            continue;
        add_link(l, (struct nccl_link){(uint32_t)work_comm_group(work), channel_of(work),
                                       barrier ? NCCL_SHIFT_OF_BARRIERS : rank_shift_of(work), NULL,
                                       NULL});
    }
}

/* ---- calls in progress ---- */

bool nccl_enter_call(struct nccl_links *l, struct nccl_link *link)
{
    atomic_store(&l->link_in_call, link);
    if (!atomic_load(&l->is_aborted))
        return true;
    atomic_store(&l->link_in_call, NULL);
    return false;
}

void nccl_leave_call(struct nccl_links *l)
{
    atomic_store(&l->link_in_call, NULL);
}

/* Waits until no thread is in a call. Returns false if one still is after LEAVE_S seconds. */
static bool wait_until_no_call(const struct nccl_links *l)
{
    static const struct timespec nap = {0, 1000000};
    double until_s = run_now_s() + LEAVE_S;
    while (atomic_load(&l->link_in_call) != NULL && run_now_s() < until_s)
        nanosleep(&nap, NULL);
    return atomic_load(&l->link_in_call) == NULL;
}

void nccl_abort(struct nccl_links *l)
{
    if (atomic_exchange(&l->is_aborted, true))
        return;
    const struct nccl_link *held = wait_until_no_call(l) ? NULL : atomic_load(&l->link_in_call);
    if (held != NULL && held->comm != NULL)
        l->nccl->ncclCommAbort(held->comm);
    l->has_unendable_call = held != NULL && !wait_until_no_call(l);
    for (uint32_t i = 0; i < l->link_count && !l->has_unendable_call; i++)
        if (l->links[i].comm != NULL && &l->links[i] != held)
            l->nccl->ncclCommAbort(l->links[i].comm);
    if (l->world.comm != NULL && &l->world != held && !l->has_unendable_call)
        l->nccl->ncclCommAbort(l->world.comm);
}

/* ---- registered memory ---- */

#ifdef HAVE_NCCL_REGISTRATION
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    const struct nccl_registration *nccl = nccl_registration_open(diag);
    const ncclResult_t result = nccl != NULL ? nccl->ncclMemAlloc(memory, bytes) : ncclSuccess;
    if (nccl != NULL && result != ncclSuccess)
        diag_error(diag, (struct loc){.name = "ncclMemAlloc"}, STATUS_SYSTEM, "%zu bytes: %s",
                   bytes, nccl_open(NULL)->ncclGetErrorString(result));
    return nccl != NULL && result == ncclSuccess ? STATUS_OK : STATUS_SYSTEM;
}

void nccl_free_memory(void *memory)
{
    nccl_registration_open(NULL)->ncclMemFree(memory);
}

void nccl_deregister(struct nccl_link *link)
{
    if (link->registration != NULL)
        nccl_registration_open(NULL)->ncclCommDeregister(link->comm, link->registration);
    link->registration = NULL;
}
#else
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    (void)memory;
    (void)bytes;
    return diag_error(diag, (struct loc){.name = "--nccl-buffers"}, STATUS_BAD_INPUT,
                      "this program was built with an NCCL older than 2.19, which registers none");
}

void nccl_free_memory(void *memory)
{
    (void)memory;
}

void nccl_deregister(struct nccl_link *link)
{
    (void)link;
}
#endif

#else /* built without NCCL */

enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    (void)memory;
    (void)bytes;
    (void)diag;
    return STATUS_SYSTEM;
}

void nccl_free_memory(void *memory)
{
    (void)memory;
}
#endif
