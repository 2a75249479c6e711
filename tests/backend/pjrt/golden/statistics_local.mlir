module @tepal attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%0: tensor<3xf32>,
      %1: tensor<3xf32>,
      %2: tensor<3xf32> {tf.aliasing_output = 1 : i32},
      %3: tensor<2x4x4x3xf32>,
      %4: tensor<i32>)
      -> (tensor<2x4x4x3xf32>, tensor<3xf32>) {
    %5 = stablehlo.broadcast_in_dim %2, dims = [3] : (tensor<3xf32>) -> tensor<2x4x4x3xf32> loc("batch_moments")
    %6 = stablehlo.subtract %3, %5 : tensor<2x4x4x3xf32> loc("batch_moments")
    %7 = stablehlo.iota dim = 0 : tensor<2xi32> loc("batch_moments")
    %8 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<2xi32> loc("batch_moments")
    %9 = stablehlo.compare LT, %7, %8 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1> loc("batch_moments")
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2xi1>) -> tensor<2x4x4x3xi1> loc("batch_moments")
    %11 = stablehlo.constant dense<0.000000000e+00> : tensor<2x4x4x3xf32> loc("batch_moments")
    %12 = stablehlo.select %10, %6, %11 : tensor<2x4x4x3xi1>, tensor<2x4x4x3xf32> loc("batch_moments")
    %13 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("batch_moments")
    %14 = stablehlo.reduce(%12 init: %13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x3xf32>, tensor<f32>) -> tensor<3xf32> loc("batch_moments")
    %15 = stablehlo.multiply %12, %12 : tensor<2x4x4x3xf32> loc("batch_moments")
    %16 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("batch_moments")
    %17 = stablehlo.reduce(%15 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x3xf32>, tensor<f32>) -> tensor<3xf32> loc("batch_moments")
    %18 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32> loc("batch_moments")
    %19 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("batch_moments")
    %20 = stablehlo.maximum %18, %19 : tensor<f32> loc("batch_moments")
    %21 = stablehlo.constant dense<1.600000000e+01> : tensor<f32> loc("batch_moments")
    %22 = stablehlo.multiply %20, %21 : tensor<f32> loc("batch_moments")
    %23 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("batch_moments")
    %24 = stablehlo.divide %23, %22 : tensor<f32> loc("batch_moments")
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<3xf32> loc("batch_moments")
    %26 = stablehlo.multiply %14, %25 : tensor<3xf32> loc("batch_moments")
    %27 = stablehlo.multiply %17, %25 : tensor<3xf32> loc("batch_moments")
    %28 = stablehlo.multiply %26, %26 : tensor<3xf32> loc("batch_moments")
    %29 = stablehlo.subtract %27, %28 : tensor<3xf32> loc("batch_moments")
    %30 = stablehlo.constant dense<0.000000000e+00> : tensor<3xf32> loc("batch_moments")
    %31 = stablehlo.maximum %29, %30 : tensor<3xf32> loc("batch_moments")
    %32 = stablehlo.add %2, %26 : tensor<3xf32> loc("batch_moments")
    %33 = stablehlo.reshape %32 : (tensor<3xf32>) -> tensor<1x3xf32> loc("batch_moments")
    %34 = stablehlo.reshape %31 : (tensor<3xf32>) -> tensor<1x3xf32> loc("batch_moments")
    %35 = stablehlo.concatenate %33, %34, dim = 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32> loc("batch_moments")
    %36 = stablehlo.slice %35 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32> loc("row")
    %37 = stablehlo.reshape %36 : (tensor<1x3xf32>) -> tensor<3xf32> loc("row")
    %38 = stablehlo.slice %35 [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32> loc("row")
    %39 = stablehlo.reshape %38 : (tensor<1x3xf32>) -> tensor<3xf32> loc("row")
    %40 = stablehlo.constant dense<1.000000047e-03> : tensor<3xf32> loc("bn")
    %41 = stablehlo.add %39, %40 : tensor<3xf32> loc("bn")
    %42 = stablehlo.rsqrt %41 : tensor<3xf32> loc("bn")
    %43 = stablehlo.multiply %0, %42 : tensor<3xf32> loc("bn")
    %44 = stablehlo.broadcast_in_dim %37, dims = [3] : (tensor<3xf32>) -> tensor<2x4x4x3xf32> loc("bn")
    %45 = stablehlo.subtract %3, %44 : tensor<2x4x4x3xf32> loc("bn")
    %46 = stablehlo.broadcast_in_dim %43, dims = [3] : (tensor<3xf32>) -> tensor<2x4x4x3xf32> loc("bn")
    %47 = stablehlo.multiply %45, %46 : tensor<2x4x4x3xf32> loc("bn")
    %48 = stablehlo.broadcast_in_dim %1, dims = [3] : (tensor<3xf32>) -> tensor<2x4x4x3xf32> loc("bn")
    %49 = stablehlo.add %47, %48 : tensor<2x4x4x3xf32> loc("bn")
    %50 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32> loc("replicas")
    %51 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("replicas")
    %52 = stablehlo.minimum %50, %51 : tensor<f32> loc("replicas")
    %53 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32> loc("replicas")
    %54 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("replicas")
    %55 = stablehlo.minimum %53, %54 : tensor<f32> loc("replicas")
    %56 = stablehlo.reshape %53 : (tensor<f32>) -> tensor<1xf32> loc("replicas")
    %57 = stablehlo.reshape %55 : (tensor<f32>) -> tensor<1xf32> loc("replicas")
    %58 = stablehlo.concatenate %56, %57, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32> loc("replicas")
    %59 = "stablehlo.all_reduce"(%58) ({
    ^bb0(%60: tensor<f32>, %61: tensor<f32>):
      %62 = stablehlo.add %60, %61 : tensor<f32>
      stablehlo.return %62 : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<2xf32>) -> tensor<2xf32> loc("replicas")
    %63 = stablehlo.slice %59 [1:2] : (tensor<2xf32>) -> tensor<1xf32> loc("replicas")
    %64 = stablehlo.reshape %63 : (tensor<1xf32>) -> tensor<f32> loc("replicas")
    %65 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("replicas")
    %66 = stablehlo.maximum %64, %65 : tensor<f32> loc("replicas")
    %67 = stablehlo.divide %52, %66 : tensor<f32> loc("replicas")
    %68 = stablehlo.broadcast_in_dim %67, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc("replicas")
    %69 = stablehlo.multiply %35, %68 : tensor<2x3xf32> loc("replicas")
    %70 = "stablehlo.all_reduce"(%69) ({
    ^bb0(%71: tensor<f32>, %72: tensor<f32>):
      %73 = stablehlo.add %71, %72 : tensor<f32>
      stablehlo.return %73 : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("replicas")
    %74 = stablehlo.slice %70 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32> loc("row")
    %75 = stablehlo.reshape %74 : (tensor<1x3xf32>) -> tensor<3xf32> loc("row")
    %76 = stablehlo.constant dense<9.900000095e-01> : tensor<3xf32> loc("bn/moving_mean")
    %77 = stablehlo.multiply %2, %76 : tensor<3xf32> loc("bn/moving_mean")
    %78 = stablehlo.constant dense<9.999990463e-03> : tensor<3xf32> loc("bn/moving_mean")
    %79 = stablehlo.multiply %75, %78 : tensor<3xf32> loc("bn/moving_mean")
    %80 = stablehlo.add %77, %79 : tensor<3xf32> loc("bn/moving_mean")
    return %49, %80 : tensor<2x4x4x3xf32>, tensor<3xf32>
  }
}
