#include "exec/cuda/matmul.h"

#include "base/arena.h"
#include "exec/cuda/versions.h"
#include "models/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct product {
    struct product_shape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y; /* layouts as cuBLASLt sees them: its a is our b */
    cublasLtMatmulAlgo_t algorithm;
    float beta;
    struct product *next;
};

struct products {
    const struct cublaslt *cublaslt;
    cublasLtHandle_t handle;
    struct product *product_list_head;
};

static const cudaDataType_t types[DTYPE_COUNT] = {
    [DTYPE_BF16] = CUDA_R_16BF,    [DTYPE_F16] = CUDA_R_16F,      [DTYPE_F32] = CUDA_R_32F,
    [DTYPE_E4M3] = CUDA_R_8F_E4M3, [DTYPE_E5M2] = CUDA_R_8F_E5M2,
};

const char *product_error_text(const struct products *products, int status)
{
    return products->cublaslt->cublasLtGetStatusString((cublasStatus_t)status);
}

struct products *products_new(const struct cublaslt *cublaslt, struct diag *diag)
{
    struct products *products = heap_zalloc(1, sizeof *products);
    products->cublaslt = cublaslt;
    cublasStatus_t status = cublaslt->cublasLtCreate(&products->handle);
    if (status == CUBLAS_STATUS_SUCCESS)
        return products;
    diag_error(diag, (struct loc){.name = "cublasLtCreate"}, STATUS_SYSTEM, "%s",
               product_error_text(products, (int)status));
    free(products);
    return NULL;
}

static void product_free(const struct products *products, struct product *product)
{
    if (product->desc != NULL)
        products->cublaslt->cublasLtMatmulDescDestroy(product->desc);
    if (product->a != NULL)
        products->cublaslt->cublasLtMatrixLayoutDestroy(product->a);
    if (product->b != NULL)
        products->cublaslt->cublasLtMatrixLayoutDestroy(product->b);
    if (product->y != NULL)
        products->cublaslt->cublasLtMatrixLayoutDestroy(product->y);
    free(product);
}

void products_free(struct products *products)
{
    if (products == NULL)
        return;
    while (products->product_list_head != NULL) {
        struct product *next = products->product_list_head->next;
        product_free(products, products->product_list_head);
        products->product_list_head = next;
    }
    products->cublaslt->cublasLtDestroy(products->handle);
    free(products);
}

uint8_t product_address_alignment_log2(const void *address)
{
    uint8_t alignment_log2 = 0;
    while (alignment_log2 < 8 && ((uintptr_t)address >> alignment_log2 & 1) == 0)
        alignment_log2++;
    return alignment_log2;
}

static cublasStatus_t make_layouts(const struct cublaslt *lt, struct product *p)
{
    const struct product_shape *s = &p->shape;
    bool a_turned = s->form == MATMUL_TN, b_turned = s->form == MATMUL_NT;
    const cudaDataType_t in = types[s->a_type], in_b = s->has_scales ? types[s->b_type] : in;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    cublasStatus_t status = lt->cublasLtMatrixLayoutCreate(&p->a, in_b, b_turned ? k : n,
                                                           b_turned ? n : k, s->b_stride);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatrixLayoutCreate(&p->b, in, a_turned ? m : k, a_turned ? k : m,
                                                s->a_stride);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatrixLayoutCreate(&p->y, types[s->y_type], n, m, s->y_stride);
    return status;
}

#if CUBLAS_VERSION >= 120900
_Static_assert((int)CUBLASLT_MATMUL_DESC_A_SCALE_MODE == (int)CUBLASLT_SCALE_MODE_A &&
                   (int)CUBLASLT_MATMUL_DESC_B_SCALE_MODE == (int)CUBLASLT_SCALE_MODE_B &&
                   (int)CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F == (int)CUBLASLT_SCALES_VECTOR &&
                   (int)CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F == (int)CUBLASLT_SCALES_BLOCK,
               "numbers of cuBLAS 12.9");
#endif

const char *products_why_no_block_scales(const struct products *products)
{
    int device = 0, major = 0;
    if (products->cublaslt->cublasLtGetVersion() < CUBLASLT_BLOCK_SCALES_SINCE)
        return "cuBLASLt older than 12.9 has no products";
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        major < 9)
        return "cuBLASLt has products on GPUs of compute capability 9.0 (Hopper) only, and this "
               "one is older";
    return major == 9
               ? NULL
               : "cuBLASLt has products on GPUs of compute capability 9.0 (Hopper) only, and "
                 "this one is newer (Blackwell has those of mxfp8 and nvfp4 instead)";
}

static cublasStatus_t make_desc(const struct cublaslt *lt, struct product *p)
{
    const struct product_shape *s = &p->shape;
    const cublasOperation_t op_a = s->form == MATMUL_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = s->form == MATMUL_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    static const cublasLtEpilogue_t epilogues[PRODUCT_EPILOGUE_COUNT][2] = {
        /* [epilogue] cuBLASLt's names for it, without and with a bias */
        [PRODUCT_NO_EPILOGUE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [PRODUCT_GELU] = {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        [PRODUCT_COLUMN_SUM] = {CUBLASLT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_BGRADB}};
    const cublasLtEpilogue_t epilogue = epilogues[s->epilogue][s->has_bias];
    static const int32_t vector_mode = CUBLASLT_SCALES_VECTOR, block_mode = CUBLASLT_SCALES_BLOCK;
    const bool has_blocks = s->scaling == SCALING_VECTOR || s->scaling == SCALING_BLOCK;
    const bool keeps = s->epilogue == PRODUCT_GELU, sums = s->epilogue == PRODUCT_COLUMN_SUM;
    /* addresses with the alignments that the library may assume when it chooses an algorithm */
    const void *somewhere = (const void *)(uintptr_t)256, *beside = (const void *)(uintptr_t)16;
    const struct {
        cublasLtMatmulDescAttributes_t name;
        const void *value;
        size_t size;
        bool wanted;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a, true},
        {CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b, true},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, true},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &types[s->y_type], sizeof types[0],
         s->has_bias || sums},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&somewhere, sizeof somewhere,
         s->has_bias},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&beside, sizeof beside, sums},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (const void *)&beside, sizeof beside, keeps},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &s->y_stride, sizeof s->y_stride, keeps},
        {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (const void *)&somewhere, sizeof somewhere,
         s->has_scales},
        {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (const void *)&somewhere, sizeof somewhere,
         s->has_scales},
        {(cublasLtMatmulDescAttributes_t)CUBLASLT_SCALE_MODE_A,
         s->scaling == SCALING_BLOCK ? &block_mode : &vector_mode, sizeof vector_mode, has_blocks},
        {(cublasLtMatmulDescAttributes_t)CUBLASLT_SCALE_MODE_B, &vector_mode, sizeof vector_mode,
         has_blocks},
    };
    cublasStatus_t status = lt->cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (size_t i = 0; i < ARRAY_LEN(attributes) && status == CUBLAS_STATUS_SUCCESS; i++)
        if (attributes[i].wanted)
            status = lt->cublasLtMatmulDescSetAttribute(p->desc, attributes[i].name,
                                                        attributes[i].value, attributes[i].size);
    return status;
}

/* True if the library may split k into parts, whose products it computes separately and adds. */
static bool may_split_product_along_k(const struct cublaslt *lt, const struct product_shape *shape)
{
    return shape->k % VERSION_SPLIT == 0 ||
           version_find_rule(NVIDIA_CUBLASLT, VERSION_SPLIT_K_NEEDS_WHOLE_PARTS,
                             (int)lt->cublasLtGetVersion()) == NULL;
}

/* Returns the schemes by which the library may add the parts of k; none if it may not split k
 * (may_split_product_along_k()). For 16-bit results, it excludes the schemes that add in the result's type, since these
 * would round once for each part. */
static uint32_t allowed_split_k_schemes(const struct cublaslt *lt,
                                        const struct product_shape *shape)
{
    return !may_split_product_along_k(lt, shape) ? CUBLASLT_REDUCTION_SCHEME_NONE
           : shape->y_type == DTYPE_F32          ? CUBLASLT_REDUCTION_SCHEME_MASK /* any */
                                                 : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static cublasStatus_t choose_algorithm(const struct products *products, struct product *p)
{
    const struct cublaslt *lt = products->cublaslt;
    const struct product_shape *s = &p->shape;
    const uint64_t workspace = PRODUCT_WORKSPACE;
    const uint32_t splits = allowed_split_k_schemes(lt, s);
    const uint32_t a_bytes = 1u << s->b_align_log2, b_bytes = 1u << s->a_align_log2,
                   y_bytes = 1u << s->y_align_log2;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } wanted_all[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &splits, sizeof splits},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a_bytes, sizeof a_bytes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b_bytes, sizeof b_bytes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &y_bytes, sizeof y_bytes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &y_bytes, sizeof y_bytes},
    };
    cublasLtMatmulHeuristicResult_t best;
    cublasLtMatmulPreference_t preference = NULL;
    int found = 0;
    cublasStatus_t status = lt->cublasLtMatmulPreferenceCreate(&preference);
    for (size_t i = 0; i < ARRAY_LEN(wanted_all) && status == CUBLAS_STATUS_SUCCESS; i++)
        status = lt->cublasLtMatmulPreferenceSetAttribute(preference, wanted_all[i].name,
                                                          wanted_all[i].value, wanted_all[i].size);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatmulAlgoGetHeuristic(products->handle, p->desc, p->a, p->b, p->y,
                                                    p->y, preference, 1, &best, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS)
        p->algorithm = best.algo;
    if (preference != NULL)
        lt->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

const struct product *products_plan(struct products *products, const struct product_shape *shape,
                                    struct diag *diag)
{
    static const char *const forms[] = {"nt", "nn", "tn"};
    for (struct product *p = products->product_list_head; p != NULL; p = p->next)
        if (memcmp(&p->shape, shape, sizeof *shape) == 0)
            return p;
    struct product *p = heap_zalloc(1, sizeof *p);
    p->shape = *shape;
    p->beta = shape->accumulates ? 1 : 0;
    cublasStatus_t status = make_layouts(products->cublaslt, p);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_desc(products->cublaslt, p);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choose_algorithm(products, p);
    if (status != CUBLAS_STATUS_SUCCESS) {
        if (diag != NULL)
            diag_error(diag, (struct loc){.name = "cublasLtMatmulAlgoGetHeuristic"}, STATUS_SYSTEM,
                       "%s: a product of %" PRId64 " x %" PRId64 " x %" PRId64
                       " (%s) of %s into %s%s%s",
                       product_error_text(products, (int)status), shape->m, shape->n, shape->k,
                       forms[shape->form], dtype_name((enum dtype)shape->a_type),
                       dtype_name((enum dtype)shape->y_type), shape->has_bias ? ", with bias" : "",
                       shape->accumulates ? ", added up" : "");
        product_free(products, p);
        return NULL;
    }
    p->next = products->product_list_head;
    products->product_list_head = p;
    return p;
}

int product_set_scales(const struct products *products, const struct product *product,
                       const void *a, const void *b)
{
    const struct cublaslt *lt = products->cublaslt;
    cublasStatus_t status = lt->cublasLtMatmulDescSetAttribute(
        product->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (const void *)&b, sizeof b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatmulDescSetAttribute(
            product->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (const void *)&a, sizeof a);
    return (int)status;
}

int product_run(const struct products *products, const struct product *product, float alpha,
                const void *a, const void *b, const void *bias, const void *c, void *y,
                void *beside, void *workspace, cudaStream_t stream)
{
    const struct cublaslt *lt = products->cublaslt;
    const struct product_shape *s = &product->shape;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (s->epilogue == PRODUCT_COLUMN_SUM)
        bias = beside;
    /* this call's addresses are set in the plan's description, which the library reads before cublasLtMatmul()
     * returns */
    if (s->has_bias || s->epilogue == PRODUCT_COLUMN_SUM)
        status = lt->cublasLtMatmulDescSetAttribute(
            product->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&bias, sizeof bias);
    if (status == CUBLAS_STATUS_SUCCESS && s->epilogue == PRODUCT_GELU)
        status = lt->cublasLtMatmulDescSetAttribute(product->desc,
                                                    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                                    (const void *)&beside, sizeof beside);
    if (status != CUBLAS_STATUS_SUCCESS)
        return (int)status;
    return (int)lt->cublasLtMatmul(products->handle, product->desc, &alpha, b, product->a, a,
                                   product->b, &product->beta, c, product->y, y, product->y,
                                   &product->algorithm, workspace, PRODUCT_WORKSPACE, stream);
}
