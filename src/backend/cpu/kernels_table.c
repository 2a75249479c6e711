/* The table of one instruction set. */
#include "backend/cpu/family.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

const tp__kernels TP__JOIN(kernels, TP__ISA) = {
    .name = TEXT(TP__ISA),
    .vector = TP__VECTOR,
    .packed_gemm = TP__FN(packed_gemm),
    .pack_gemm = TP__FN(pack_gemm),
    .scale_packed = TP__FN(scale_packed),
    .gemm = TP__FN(gemm),
    .gemm_kernel_grad = TP__FN(gemm_kernel_grad),
    .packed_conv = TP__FN(packed_conv),
    .pack_conv = TP__FN(pack_conv),
    .conv_scratch = TP__FN(conv_scratch),
    .conv = TP__FN(conv),
    .packed_depthwise = TP__FN(packed_depthwise),
    .pack_depthwise = TP__FN(pack_depthwise),
    .depthwise_scratch = TP__FN(depthwise_scratch),
    .depthwise = TP__FN(depthwise),
    .depthwise_input_grad = TP__FN(depthwise_input_grad),
    .depthwise_kernel_grad = TP__FN(depthwise_kernel_grad),
    .max_pool = TP__FN(max_pool),
    .avg_pool = TP__FN(avg_pool),
    .max_pool_grad = TP__FN(max_pool_grad),
    .avg_pool_grad = TP__FN(avg_pool_grad),
    .norm = TP__FN(norm),
    .act = TP__FN(act),
    .act_grad = TP__FN(act_grad),
    .add = TP__FN(add),
    .scale_channels = TP__FN(scale_channels),
    .affine_channels = TP__FN(affine_channels),
    .sum_pixels = TP__FN(sum_pixels),
    .sum_products = TP__FN(sum_products),
    .moments = TP__FN(moments),
    .norm_act_grad = TP__FN(norm_act_grad),
    .norm_grad = TP__FN(norm_grad),
    .norm_sums = TP__FN(norm_sums),
    .adam = TP__FN(adam),
    .peak = TP__FN(peak),
};
