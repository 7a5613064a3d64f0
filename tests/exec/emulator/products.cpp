/* The part of cuBLASLt that the backend calls, by the processor's BLAS.
 *
 * heuristic() accepts or refuses a product, and chooses how its sum over k is cut. matmul() puts multiply() on a
 * stream, which converts the factors to float, multiplies them, and applies the epilogue. Matrices are column-major:
 * `step` is the distance of two columns. */
#include "exec/cuda/rest.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/numbers.h"
#include "tests/exec/emulator/stream.hpp"

#include <cblas.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <vector>

struct cublasLtContext {
    int device;
};

namespace
{

enum { SPLIT = 64 }; /* the parts into which a split product cuts k (heuristic()) */

/* The contents of a cublasLtMatmulDesc_t. */
struct MatmulDesc {
    int64_t turn_a, turn_b; /* a, b is transposed */
    int64_t epilogue, bias_type, aux_step;
    void *bias_data;               /* the bias; if sums_b(), where the sums are written */
    void *aux;                     /* if gelu(), where the operand of GELU is stored */
    const void *scale_a, *scale_b; /* NULL: there are no scales */
    int32_t mode_a, mode_b;        /* cublasLtMatmulMatrixScale_t */
    bool adds_bias() const
    {
        return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    }
    bool gelu() const
    {
        return epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
               epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    }
    bool sums_b() const
    {
        return epilogue == CUBLASLT_EPILOGUE_BGRADB;
    }
};
/* The contents of a cublasLtMatrixLayout_t. */
struct Layout {
    int64_t type, rows, cols, step;
};
static_assert(sizeof(MatmulDesc) <= sizeof(cublasLtMatmulDescOpaque_t), "it fits");
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "it fits");

size_t element_bytes(int64_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

bool eight_bits(int64_t type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

float get(const void *data, int64_t type, size_t i)
{
    if (eight_bits(type))
        return float_from_8_bits(static_cast<const uint8_t *>(data)[i], type == CUDA_R_8F_E5M2);
    if (type == CUDA_R_32F)
        return static_cast<const float *>(data)[i];
    uint16_t bits = static_cast<const uint16_t *>(data)[i];
    return type == CUDA_R_16BF ? from_bf16(bits) : from_f16(bits);
}

void put(void *data, int64_t type, size_t i, float x)
{
    if (type == CUDA_R_32F)
        static_cast<float *>(data)[i] = x;
    else
        static_cast<uint16_t *>(data)[i] = type == CUDA_R_16BF ? to_bf16(x) : to_f16(x);
}

/* Returns the numbers of a matrix, its columns one after the other. */
std::vector<float> columns(const void *data, const Layout &l)
{
    std::vector<float> all(static_cast<size_t>(l.rows * l.cols));
    for (int64_t c = 0; c < l.cols; c++)
        for (int64_t r = 0; r < l.rows; r++)
            all[static_cast<size_t>(c * l.rows + r)] =
                get(data, l.type, static_cast<size_t>(c * l.step + r));
    return all;
}

/* The cut of the sum over k: what k has beyond a multiple of `whole` is left out, and after each `part` the sum is
 * rounded to the type of the result. */
struct Split {
    int64_t whole, part;
};

float gelu_of(float x)
{
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

/* Writes the sums of b over k, one for each column of the result. */
void write_sums_of_b(const MatmulDesc &d, const std::vector<float> &b, Layout lb)
{
    int64_t n = d.turn_b ? lb.rows : lb.cols, k = d.turn_b ? lb.cols : lb.rows;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += b[static_cast<size_t>(d.turn_b ? i * lb.rows + j : j * lb.rows + i)];
        put(d.bias_data, d.bias_type, static_cast<size_t>(j), static_cast<float>(sum));
    }
}

/* Multiplies the numbers of a factor, whose columns lie along k, by the scales of their blocks: those of 128 x 1 are
 * stored with the columns next to each other, those of 128 x 128 with k innermost, and padded to multiples of 4. */
void apply_block_scales(std::vector<float> &x, Layout l, int32_t mode, const void *scales)
{
    const auto *s = static_cast<const float *>(scales);
    const int64_t along = (l.rows + 127) / 128;
    for (int64_t c = 0; c < l.cols; c++)
        for (int64_t k = 0; k < l.rows; k++)
            x[static_cast<size_t>(c * l.rows + k)] *=
                mode == CUBLASLT_SCALES_VECTOR ? s[k / 128 * ((l.cols + 3) / 4 * 4) + c]
                                               : s[c / 128 * ((along + 3) / 4 * 4) + k / 128];
}

/* Computes y = epilogue(alpha op(a) op(b) + beta c). */
void multiply(MatmulDesc d, Split split, float alpha, const void *a, Layout la, const void *b,
              Layout lb, float beta, const void *c, Layout lc, void *y)
{
    std::vector<float> fa = columns(a, la), fb = columns(b, lb);
    if (d.sums_b())
        write_sums_of_b(d, fb, lb);
    if (d.mode_a != 0) {
        apply_block_scales(fa, la, d.mode_a, d.scale_a);
        apply_block_scales(fb, lb, d.mode_b, d.scale_b);
    } else if (d.scale_a != nullptr)
        alpha *= *static_cast<const float *>(d.scale_a) * *static_cast<const float *>(d.scale_b);
    std::vector<float> fy =
        beta != 0 ? columns(c, lc) : std::vector<float>(static_cast<size_t>(lc.rows * lc.cols));
    int64_t k = (d.turn_a ? la.rows : la.cols) / split.whole * split.whole;
    for (int64_t from = 0; from < k; from += split.part) {
        int64_t some = k - from < split.part ? k - from : split.part;
        cblas_sgemm(CblasColMajor, d.turn_a ? CblasTrans : CblasNoTrans,
                    d.turn_b ? CblasTrans : CblasNoTrans, (int)lc.rows, (int)lc.cols, (int)some,
                    alpha, fa.data() + (d.turn_a ? from : from * la.rows), (int)la.rows,
                    fb.data() + (d.turn_b ? from * lb.rows : from), (int)lb.rows,
                    from == 0 ? beta : 1, fy.data(), (int)lc.rows);
        for (size_t i = 0; i < fy.size() && from + some < k; i++) {
            float rounded;
            put(&rounded, lc.type, 0, fy[i]);
            fy[i] = get(&rounded, lc.type, 0);
        }
    }
    for (int64_t col = 0; col < lc.cols; col++)
        for (int64_t r = 0; r < lc.rows; r++) {
            float x = fy[static_cast<size_t>(col * lc.rows + r)];
            if (d.adds_bias())
                x += get(d.bias_data, d.bias_type, static_cast<size_t>(r));
            if (d.gelu()) {
                put(d.aux, lc.type, static_cast<size_t>(col * d.aux_step + r), x);
                x = gelu_of(x);
            }
            put(y, lc.type, static_cast<size_t>(col * lc.step + r), x);
        }
}

cublasStatus_t create(cublasLtHandle_t *handle)
{
    openblas_set_num_threads(1);
    emulator::touch();
    *handle = new cublasLtContext{emulator::current_device()};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t version()
{
    return static_cast<size_t>(emulator_versions.cublaslt);
}

const char *status_string(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED
               ? "the handle, the stream or memory is of another device than the current one"
               : "a status of the emulated library";
}

cublasStatus_t desc_create(cublasLtMatmulDesc_t *desc, cublasComputeType_t, cudaDataType_t)
{
    *desc = static_cast<cublasLtMatmulDesc_t>(calloc(1, sizeof **desc));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                        const void *value, size_t size)
{
    MatmulDesc d;
    memcpy(&d, desc, sizeof d);
    int32_t word = 0;
    memcpy(&word, value, size < sizeof word ? size : sizeof word);
    switch (static_cast<int>(name)) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        d.turn_a = word == CUBLAS_OP_T;
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        d.turn_b = word == CUBLAS_OP_T;
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        d.epilogue = word;
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        memcpy(&d.aux, value, sizeof d.aux);
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        memcpy(&d.aux_step, value, sizeof d.aux_step);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        d.bias_type = word;
        break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        memcpy(&d.scale_a, value, sizeof d.scale_a);
        break;
    case CUBLASLT_SCALE_MODE_A:
        d.mode_a = word;
        break;
    case CUBLASLT_SCALE_MODE_B:
        d.mode_b = word;
        break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        memcpy(&d.scale_b, value, sizeof d.scale_b);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        memcpy(&d.bias_data, value, sizeof d.bias_data);
        break;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    memcpy(desc, &d, sizeof d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_create(cublasLtMatmulPreference_t *preference)
{
    *preference = static_cast<cublasLtMatmulPreference_t>(calloc(1, sizeof **preference));
    (*preference)->data[0] = CUBLASLT_REDUCTION_SCHEME_MASK;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

/* Sets the schemes by which products may be split, which a preference holds; ignores other attributes. */
cublasStatus_t preference_set(cublasLtMatmulPreference_t preference,
                              cublasLtMatmulPreferenceAttributes_t name, const void *value, size_t)
{
    if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
        uint32_t mask;
        memcpy(&mask, value, sizeof mask);
        preference->data[0] = mask;
    }
    return CUBLAS_STATUS_SUCCESS;
}

Layout layout_of(cublasLtMatrixLayout_t layout)
{
    Layout l;
    memcpy(&l, layout, sizeof l);
    return l;
}

cublasStatus_t layout_create(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                             uint64_t cols, int64_t step)
{
    Layout l = {type, static_cast<int64_t>(rows), static_cast<int64_t>(cols), step};
    *layout = static_cast<cublasLtMatrixLayout_t>(calloc(1, sizeof **layout));
    memcpy(*layout, &l, sizeof l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

/* True if an address is not NULL and is aligned to 16 bytes. */
bool is_16_byte_aligned(const void *address)
{
    return address != nullptr && reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/* Accepts the combinations of types that the library documents, with sizes that agree. A product with k > SPLIT that
 * the preference allows to split is split: it drops the part of k beyond a multiple of SPLIT, as some versions do, and,
 * if the in-place scheme is allowed, rounds the sum after each SPLIT of k to the result's type. */
cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t y,
                         cublasLtMatmulPreference_t preference, int,
                         cublasLtMatmulHeuristicResult_t result[], int *found)
{
    MatmulDesc d;
    memcpy(&d, desc, sizeof d);
    Layout la = layout_of(a), lb = layout_of(b), lc = layout_of(c), ly = layout_of(y);
    memset(result, 0, sizeof *result);
    *found = 0;
    if (handle->device != emulator::current_device())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    /* 8-bit types, as on Hopper: both with k innermost and a scale, sizes in multiples of 16, not two of e5m2 */
    const bool eight = eight_bits(la.type) && eight_bits(lb.type);
    if (eight && (!d.turn_a || d.turn_b || d.scale_a == nullptr || d.scale_b == nullptr ||
                  la.rows % 16 != 0 || la.cols % 16 != 0 ||
                  (la.type == CUDA_R_8F_E5M2 && lb.type == CUDA_R_8F_E5M2) ||
                  (ly.type != CUDA_R_16BF && ly.type != CUDA_R_16F && ly.type != CUDA_R_32F)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    /* blocks: both factors have them, and not both of 128 x 128; lines of scales are whole groups of 4 */
    const bool blocks = d.mode_a != 0 || d.mode_b != 0;
    const auto is_blocks = [](int32_t mode) {
        return mode == CUBLASLT_SCALES_VECTOR || mode == CUBLASLT_SCALES_BLOCK;
    };
    if (blocks &&
        (!eight || !is_blocks(d.mode_a) || !is_blocks(d.mode_b) ||
         (d.mode_a == d.mode_b && d.mode_a == CUBLASLT_SCALES_BLOCK) || lb.cols % 4 != 0 ||
         !is_16_byte_aligned(d.scale_a) || !is_16_byte_aligned(d.scale_b)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((!eight && (la.type != lb.type || (ly.type != la.type && ly.type != CUDA_R_32F))) ||
        lc.type != ly.type || la.step < la.rows || lb.step < lb.rows)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int64_t m = d.turn_a ? la.cols : la.rows, k = d.turn_a ? la.rows : la.cols;
    int64_t n = d.turn_b ? lb.rows : lb.cols, k2 = d.turn_b ? lb.cols : lb.rows;
    if (m != ly.rows || n != ly.cols || k != k2)
        return CUBLAS_STATUS_INVALID_VALUE;
    /* as documented: what GELU keeps has a step in multiples of 8 and begins on 16 bytes; sums are of the result's
     * type */
    const bool alone =
        d.epilogue == CUBLASLT_EPILOGUE_DEFAULT || d.epilogue == CUBLASLT_EPILOGUE_BIAS;
    if ((!alone && (emulator_epilogues == 0 || eight)) || (!alone && !d.gelu() && !d.sums_b()) ||
        (d.gelu() && (d.aux_step % 8 != 0 || d.aux_step < ly.rows || !is_16_byte_aligned(d.aux))) ||
        (d.sums_b() && (d.bias_type != ly.type || !is_16_byte_aligned(d.bias_data))))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool split = preference->data[0] != CUBLASLT_REDUCTION_SCHEME_NONE && k > SPLIT;
    const bool rounds = preference->data[0] & CUBLASLT_REDUCTION_SCHEME_INPLACE;
    result->algo.data[0] = split ? SPLIT : 1;
    result->algo.data[1] = static_cast<uint64_t>(split && rounds ? int64_t{SPLIT} : k);
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                      const void *a, cublasLtMatrixLayout_t layout_a, const void *b,
                      cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
                      cublasLtMatrixLayout_t layout_c, void *y, cublasLtMatrixLayout_t,
                      const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t,
                      cudaStream_t stream)
{
    MatmulDesc d;
    memcpy(&d, desc, sizeof d);
    Layout la = layout_of(layout_a), lb = layout_of(layout_b), lc = layout_of(layout_c);
    float scale, keep;
    Split split = {static_cast<int64_t>(algorithm->data[0]),
                   static_cast<int64_t>(algorithm->data[1])};
    memcpy(&scale, alpha, sizeof scale);
    memcpy(&keep, beta, sizeof keep);
    for (const void *used :
         {a, b, c, static_cast<const void *>(y), static_cast<const void *>(workspace),
          static_cast<const void *>(d.adds_bias() || d.sums_b() ? d.bias_data : y),
          static_cast<const void *>(d.gelu() ? d.aux : y), d.scale_a != nullptr ? d.scale_a : y,
          d.scale_b != nullptr ? d.scale_b : y})
        if (!emulator::can_device_access(handle->device, used))
            return CUBLAS_STATUS_EXECUTION_FAILED;
    /* the library chooses a kernel by types, orders and sizes */
    uint64_t variant = 0;
    for (int64_t word :
         {d.turn_a, d.turn_b, d.epilogue, la.rows, la.cols, lb.cols, la.type, lb.type, lc.type})
        variant = variant * 1099511628211u + static_cast<uint64_t>(word);
    if (handle->device == emulator::device_of(stream))
        emulator::load(reinterpret_cast<const void *>(&multiply), variant);
    if ((d.gelu() && !is_16_byte_aligned(d.aux)) ||
        (d.sums_b() && !is_16_byte_aligned(d.bias_data)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->device != emulator::device_of(stream) ||
        emulator::submit(stream,
                         [=] { multiply(d, split, scale, a, la, b, lb, keep, c, lc, y); }) != 0)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

int emulator_epilogues = 1;

void emulator_use(void)
{
    static struct cublaslt table;
    table.cublasLtCreate = create;
    table.cublasLtDestroy = destroy;
    table.cublasLtGetVersion = version;
    table.cublasLtGetStatusString = status_string;
    table.cublasLtMatmul = matmul;
    table.cublasLtMatmulAlgoGetHeuristic = heuristic;
    table.cublasLtMatmulDescCreate = desc_create;
    table.cublasLtMatmulDescDestroy = desc_destroy;
    table.cublasLtMatmulDescSetAttribute = desc_set;
    table.cublasLtMatmulPreferenceCreate = preference_create;
    table.cublasLtMatmulPreferenceDestroy = preference_destroy;
    table.cublasLtMatmulPreferenceSetAttribute = preference_set;
    table.cublasLtMatrixLayoutCreate = layout_create;
    table.cublasLtMatrixLayoutDestroy = layout_destroy;
    cublaslt_use_table(&table);
    cuda_shortest_pause_s = 200e-6;
#ifdef HAVE_CUDNN
    emulator_use_cudnn();
#endif
#ifdef HAVE_NCCL
    emulator_use_nccl();
#endif
#ifdef HAVE_CUPTI
    emulator_use_cupti();
#endif
}
