module @tepal attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3x3x3x4xf32>,
      %1: tensor<4xf32>,
      %2: tensor<4xf32>,
      %3: tensor<4xf32>,
      %4: tensor<4xf32>,
      %5: tensor<3x3x4x1xf32>,
      %6: tensor<4x2xf32>,
      %7: tensor<2x8x8x3xui8>,
      %8: tensor<i32>)
      -> (tensor<2x2xf32>) {
    %9 = stablehlo.convert %7 : (tensor<2x8x8x3xui8>) -> tensor<2x8x8x3xf32> loc("affine")
    %10 = stablehlo.constant dense<3.921568859e-03> : tensor<2x8x8x3xf32> loc("affine")
    %11 = stablehlo.multiply %9, %10 : tensor<2x8x8x3xf32> loc("affine")
    %12 = stablehlo.convert %11 : (tensor<2x8x8x3xf32>) -> tensor<2x8x8x3xbf16> loc("stem")
    %13 = stablehlo.convert %0 : (tensor<3x3x3x4xf32>) -> tensor<3x3x3x4xbf16> loc("stem")
    %14 = stablehlo.convolution(%12, %13) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xbf16>, tensor<3x3x3x4xbf16>) -> tensor<2x4x4x4xf32> loc("stem")
    %15 = stablehlo.convert %14 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16> loc("stem")
    %16 = stablehlo.convert %15 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32> loc("stem_bn")
    %17 = stablehlo.constant dense<1.000000047e-03> : tensor<4xf32> loc("stem_bn")
    %18 = stablehlo.add %4, %17 : tensor<4xf32> loc("stem_bn")
    %19 = stablehlo.rsqrt %18 : tensor<4xf32> loc("stem_bn")
    %20 = stablehlo.multiply %1, %19 : tensor<4xf32> loc("stem_bn")
    %21 = stablehlo.multiply %3, %20 : tensor<4xf32> loc("stem_bn")
    %22 = stablehlo.subtract %2, %21 : tensor<4xf32> loc("stem_bn")
    %23 = stablehlo.broadcast_in_dim %20, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32> loc("stem_bn")
    %24 = stablehlo.multiply %16, %23 : tensor<2x4x4x4xf32> loc("stem_bn")
    %25 = stablehlo.broadcast_in_dim %22, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32> loc("stem_bn")
    %26 = stablehlo.add %24, %25 : tensor<2x4x4x4xf32> loc("stem_bn")
    %27 = stablehlo.convert %26 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16> loc("stem_bn")
    %28 = stablehlo.convert %27 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %29 = stablehlo.logistic %28 : tensor<2x4x4x4xf32>
    %30 = stablehlo.multiply %28, %29 : tensor<2x4x4x4xf32>
    %31 = stablehlo.convert %30 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %32 = stablehlo.convert %5 : (tensor<3x3x4x1xf32>) -> tensor<3x3x4x1xbf16> loc("dw")
    %33 = stablehlo.reshape %32 : (tensor<3x3x4x1xbf16>) -> tensor<3x3x1x4xbf16> loc("dw")
    %34 = stablehlo.convolution(%31, %33) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x4x4xbf16>, tensor<3x3x1x4xbf16>) -> tensor<2x4x4x4xf32> loc("dw")
    %35 = stablehlo.convert %34 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16> loc("dw")
    %36 = stablehlo.convert %35 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32> loc("global_pool")
    %37 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("global_pool")
    %38 = stablehlo.reduce(%36 init: %37) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4xf32> loc("global_pool")
    %39 = stablehlo.constant dense<6.250000000e-02> : tensor<2x4xf32> loc("global_pool")
    %40 = stablehlo.multiply %38, %39 : tensor<2x4xf32> loc("global_pool")
    %41 = stablehlo.convert %40 : (tensor<2x4xf32>) -> tensor<2x4xbf16> loc("kernel")
    %42 = stablehlo.convert %6 : (tensor<4x2xf32>) -> tensor<4x2xbf16> loc("kernel")
    %43 = stablehlo.dot_general %41, %42, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x2xbf16>) -> tensor<2x2xf32> loc("kernel")
    %44 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc("softmax")
    %45 = stablehlo.reduce(%43 init: %44) applies stablehlo.maximum across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32> loc("softmax")
    %46 = stablehlo.broadcast_in_dim %45, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32> loc("softmax")
    %47 = stablehlo.subtract %43, %46 : tensor<2x2xf32> loc("softmax")
    %48 = stablehlo.exponential %47 : tensor<2x2xf32> loc("softmax")
    %49 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("softmax")
    %50 = stablehlo.reduce(%48 init: %49) applies stablehlo.add across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32> loc("softmax")
    %51 = stablehlo.broadcast_in_dim %50, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32> loc("softmax")
    %52 = stablehlo.divide %48, %51 : tensor<2x2xf32> loc("softmax")
    return %52 : tensor<2x2xf32>
  }
}
