/* cli/mpi/calls.c: the module longhaul_mpi.so, which makes the calls of MPI that cli/sweep/launcher.h needs.
 *
 * The folder cli/mpi/ is the module through which `sweep` calls MPI. It is loaded only if a launcher started several
 * processes. */
#include "cli/sweep/launcher.h"

#include <mpi.h>

static bool mpi_start(int *rank, int *size)
{
    int given;
    /* only one thread of the process calls MPI */
    return MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &given) == MPI_SUCCESS &&
           MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
           MPI_Comm_size(MPI_COMM_WORLD, size) == MPI_SUCCESS;
}

static bool mpi_send(int to, int tag, const void *data, size_t size)
{
    return MPI_Send(data, (int)size, MPI_BYTE, to, tag, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool mpi_iprobe_any_message(int *from, int *tag, size_t *size)
{
    int there = 0, count = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS ||
        !there || MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS)
        return false;
    *from = status.MPI_SOURCE;
    *tag = status.MPI_TAG;
    *size = (size_t)count;
    return true;
}

static bool mpi_receive(int from, int tag, void *data, size_t size)
{
    return MPI_Recv(data, (int)size, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS;
}

static void mpi_finish(void)
{
    MPI_Finalize();
}

static void mpi_abort(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

extern const struct launcher_mpi_functions longhaul_mpi;
const struct launcher_mpi_functions longhaul_mpi = {mpi_start,   mpi_send,   mpi_iprobe_any_message,
                                                    mpi_receive, mpi_finish, mpi_abort};
