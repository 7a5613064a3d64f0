#include "exec/cpu/kernels.h"

#include <cblas.h>
#include <string.h>

const char *cpu_matmul(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const blasint m = (blasint)work->matmul.m, n = (blasint)work->matmul.n,
                  k = (blasint)work->matmul.k;
    const float *a = call->read[0].data, *b = call->read[1].data;
    float *y = call->write[0].data; /* (m, n) */
    bool bias = work->matmul.epilogue == EPILOGUE_BIAS;
    if (work->matmul.accumulate) {
        const float *before = call->read[bias ? 3 : 2].data;
        if (before != y)
            memmove(y, before, (size_t)m * (size_t)n * sizeof *y);
    }
    if (bias) {
        const float *row = call->read[2].data; /* (n) */
        for (blasint i = 0; i < m; i++)
            for (blasint j = 0; j < n; j++)
                y[(size_t)i * (size_t)n + (size_t)j] =
                    (work->matmul.accumulate ? y[(size_t)i * (size_t)n + (size_t)j] : 0) + row[j];
    }
    bool a_turned = work->matmul.form == MATMUL_TN, b_turned = work->matmul.form == MATMUL_NT;
    cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
                b_turned ? CblasTrans : CblasNoTrans, m, n, k, 1, a, a_turned ? m : k, b,
                b_turned ? k : n, bias || work->matmul.accumulate ? 1 : 0, y, n);
    return NULL;
}
