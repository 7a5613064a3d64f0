/* tests/fuzz/fuzz_cluster.c: whatever the text, a cluster that is read has passed its checks and can be
 * resized, placed and printed; if none is read, there is a message. A text that starts with a digit is taken as
 * the one-line form. */
#include "models/cluster.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

static void use(struct cluster *cluster, struct arena *arena)
{
    assert(cluster_check(cluster, NULL) == STATUS_OK);
    struct text text = {0};
    cluster_print_numbers_and_sources(&text, cluster);
    text_release(&text);
    (void)cluster_resize(cluster, arena, 0, 5, NULL);
    assert(cluster->gpus >= 1);
    struct cluster_place last = cluster_place_of_rank(cluster, cluster->gpus - 1);
    assert(last.node < cluster->nodes && last.gpu < cluster->gpus_per_node);
    int64_t socket = cluster_socket_of_gpu(cluster, last.gpu);
    assert(socket >= 0 && socket < cluster->host.sockets);
    if (cluster->nic.count > 0)
        assert(cluster->nic_of_gpu[last.gpu] < cluster->nic.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct cluster cluster;
    const char *text = (const char *)data;
    enum status status = size > 0 && data[0] >= '0' && data[0] <= '9'
                             ? cluster_parse_line(&cluster, &arena, text, size, &diag)
                             : cluster_parse(&cluster, &arena, "fuzz.json", text, size, &diag);
    assert((status == STATUS_OK) == (diag.error_count == 0));
    if (status == STATUS_OK)
        use(&cluster, &arena);
    diag_release(&diag);
    arena_release(&arena);
    return 0;
}
