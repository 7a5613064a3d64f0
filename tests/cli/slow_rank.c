/* tests/cli/slow_rank.c: makes the matrix products of one rank of `longhaul run` slower.
 *
 * Loaded by LD_PRELOAD, it stands before OpenBLAS's cblas_sgemm(). The first thread that calls it is the compute stream of
 * some rank; after each of its products it sleeps for SLOWER times as long as the product took.
 *
 *     cc -O2 -shared -fPIC -o slow_rank.so slow_rank.c -ldl
 *     SLOWER=0.2 LD_PRELOAD=./slow_rank.so longhaul run ... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef void gemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t slow;
static gemm *product;
static double slower;

static void begin(void)
{
    const char *text = getenv("SLOWER");
    slow = pthread_self();
    product = (gemm *)dlsym(RTLD_NEXT, "cblas_sgemm");
    slower = text != NULL ? atof(text) : 0;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    pthread_once(&once, begin);
    double start_s = now_s();
    product(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (!pthread_equal(slow, pthread_self()))
        return;
    double wait_s = slower * (now_s() - start_s), whole_s = (double)(time_t)wait_s;
    struct timespec t = {(time_t)whole_s, (long)(1e9 * (wait_s - whole_s))};
    nanosleep(&t, NULL);
}
