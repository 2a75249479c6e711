/* The table of one instruction set. */
#include "backend/cpu/family.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

const tp__kernels TP__JOIN(kernels, TP__ISA) = {
    .name = TEXT(TP__ISA),
    .vector = TP__VECTOR,
    .packed_gemm = TP__FN(packed_gemm),
    .pack_gemm = TP__FN(pack_gemm),
#ifdef TP__PAIRS
    .bf16 = true,
#else
    .scale_packed = TP__FN(scale_packed),
#endif
    .gemm = TP__FN(gemm),
    .gemm_kernel_grad = TP__FN(gemm_kernel_grad),
    .packed_conv = TP__FN(packed_conv),
    .pack_conv = TP__FN(pack_conv),
    .conv_scratch = TP__FN(conv_scratch),
    .conv = TP__FN(conv),
    .pack_conv_transposed = TP__FN(pack_conv_transposed),
    .conv_grad_scratch = TP__FN(conv_grad_scratch),
    .conv_input_grad = TP__FN(conv_input_grad),
    .conv_kernel_grad = TP__FN(conv_kernel_grad),
    .packed_winograd = TP__FN_REST(packed_winograd),
    .pack_winograd = TP__FN_REST(pack_winograd),
    .winograd_scratch = TP__FN_REST(winograd_scratch),
    .winograd = TP__FN_REST(winograd),
    .packed_depthwise = TP__FN_REST(packed_depthwise),
    .pack_depthwise = TP__FN_REST(pack_depthwise),
    .depthwise_scratch = TP__FN_REST(depthwise_scratch),
    .depthwise = TP__FN_REST(depthwise),
    .depthwise_input_grad = TP__FN_REST(depthwise_input_grad),
    .depthwise_kernel_grad = TP__FN_REST(depthwise_kernel_grad),
    .max_pool = TP__FN_REST(max_pool),
    .avg_pool = TP__FN_REST(avg_pool),
    .max_pool_grad = TP__FN_REST(max_pool_grad),
    .avg_pool_grad = TP__FN_REST(avg_pool_grad),
    .norm = TP__FN_REST(norm),
    .act = TP__FN_REST(act),
    .act_grad = TP__FN_REST(act_grad),
    .add = TP__FN_REST(add),
    .scale_channels = TP__FN_REST(scale_channels),
    .affine_channels = TP__FN_REST(affine_channels),
    .sum_pixels = TP__FN_REST(sum_pixels),
    .sum_products = TP__FN_REST(sum_products),
    .moments = TP__FN_REST(moments),
    .norm_act_grad = TP__FN_REST(norm_act_grad),
    .norm_grad = TP__FN_REST(norm_grad),
    .norm_sums = TP__FN_REST(norm_sums),
    .adam = TP__FN_REST(adam),
    .peak = TP__FN(peak),
};
