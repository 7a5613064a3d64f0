/* tests/cli/slow_rank.c: makes every matrix product of `longhaul run` take a given time, and those of one rank a
 * longer time.
 *
 * Loaded by LD_PRELOAD, it intercepts OpenBLAS's cblas_sgemm(). After each product it sleeps until PACE_MS
 * milliseconds have passed since the product's start, so that other programs, which delay short products, hardly
 * change the time of a step. The first thread that calls it is the compute stream of some rank: there products take
 * (1 + SLOWER) times as long.
 *
 *     cc -O2 -shared -fPIC -o slow_rank.so slow_rank.c -ldl
 *     PACE_MS=15 SLOWER=0.2 LD_PRELOAD=./slow_rank.so longhaul run ... */
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
static double slower, pace_s;

static double number(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? atof(text) : 0;
}

static void begin(void)
{
    slow = pthread_self();
    product = (gemm *)dlsym(RTLD_NEXT, "cblas_sgemm");
    slower = number("SLOWER");
    pace_s = 1e-3 * number("PACE_MS");
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
    double took_s = now_s() - start_s, least_s = took_s > pace_s ? took_s : pace_s;
    double wait_s = (pthread_equal(slow, pthread_self()) ? 1 + slower : 1) * least_s - took_s;
    double whole_s = (double)(time_t)wait_s;
    struct timespec t = {(time_t)whole_s, (long)(1e9 * (wait_s - whole_s))};
    nanosleep(&t, NULL);
}
