module @tepal attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<6x3xf32> {tf.aliasing_output = 2 : i32},
      %1: tensor<6x3xf32> {tf.aliasing_output = 1 : i32},
      %2: tensor<4x6xf32>,
      %3: tensor<4xi32>,
      %4: tensor<4xf32>,
      %5: tensor<f32>,
      %6: tensor<i32>)
      -> (tensor<4xf32>, tensor<6x3xf32>, tensor<6x3xf32>) {
    %7 = stablehlo.dot_general %2, %0, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32> loc("predictions/kernel")
    %8 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc("cross_entropy")
    %9 = stablehlo.reduce(%7 init: %8) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy")
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32> loc("cross_entropy")
    %11 = stablehlo.subtract %7, %10 : tensor<4x3xf32> loc("cross_entropy")
    %12 = stablehlo.exponential %11 : tensor<4x3xf32> loc("cross_entropy")
    %13 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("cross_entropy")
    %14 = stablehlo.reduce(%12 init: %13) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy")
    %15 = stablehlo.log %14 : tensor<4xf32> loc("cross_entropy")
    %16 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<4xi32>) -> tensor<4x3xi32> loc("cross_entropy")
    %17 = stablehlo.iota dim = 1 : tensor<4x3xi32> loc("cross_entropy")
    %18 = stablehlo.compare EQ, %17, %16 : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1> loc("cross_entropy")
    %19 = stablehlo.constant dense<0.000000000e+00> : tensor<4x3xf32> loc("cross_entropy")
    %20 = stablehlo.select %18, %11, %19 : tensor<4x3xi1>, tensor<4x3xf32> loc("cross_entropy")
    %21 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("cross_entropy")
    %22 = stablehlo.reduce(%20 init: %21) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy")
    %23 = stablehlo.constant dense<8.999999985e-01> : tensor<4xf32> loc("cross_entropy")
    %24 = stablehlo.multiply %22, %23 : tensor<4xf32> loc("cross_entropy")
    %25 = stablehlo.subtract %15, %24 : tensor<4xf32> loc("cross_entropy")
    %26 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("cross_entropy")
    %27 = stablehlo.reduce(%11 init: %26) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy")
    %28 = stablehlo.constant dense<3.333333383e-02> : tensor<4xf32> loc("cross_entropy")
    %29 = stablehlo.multiply %27, %28 : tensor<4xf32> loc("cross_entropy")
    %30 = stablehlo.subtract %25, %29 : tensor<4xf32> loc("cross_entropy")
    %31 = stablehlo.constant dense<1.000000000e+00> : tensor<f32> loc("constant")
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("scale_rows")
    %33 = stablehlo.multiply %32, %4 : tensor<4xf32> loc("scale_rows")
    %34 = stablehlo.iota dim = 0 : tensor<4xi32> loc("scale_rows")
    %35 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<4xi32> loc("scale_rows")
    %36 = stablehlo.compare LT, %34, %35 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1> loc("scale_rows")
    %37 = stablehlo.constant dense<0.000000000e+00> : tensor<4xf32> loc("scale_rows")
    %38 = stablehlo.select %36, %33, %37 : tensor<4xi1>, tensor<4xf32> loc("scale_rows")
    %39 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc("cross_entropy_grad")
    %40 = stablehlo.reduce(%7 init: %39) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy_grad")
    %41 = stablehlo.broadcast_in_dim %40, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32> loc("cross_entropy_grad")
    %42 = stablehlo.subtract %7, %41 : tensor<4x3xf32> loc("cross_entropy_grad")
    %43 = stablehlo.exponential %42 : tensor<4x3xf32> loc("cross_entropy_grad")
    %44 = stablehlo.constant dense<0.000000000e+00> : tensor<f32> loc("cross_entropy_grad")
    %45 = stablehlo.reduce(%43 init: %44) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc("cross_entropy_grad")
    %46 = stablehlo.broadcast_in_dim %45, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32> loc("cross_entropy_grad")
    %47 = stablehlo.divide %43, %46 : tensor<4x3xf32> loc("cross_entropy_grad")
    %48 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<4xi32>) -> tensor<4x3xi32> loc("cross_entropy_grad")
    %49 = stablehlo.iota dim = 1 : tensor<4x3xi32> loc("cross_entropy_grad")
    %50 = stablehlo.compare EQ, %49, %48 : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1> loc("cross_entropy_grad")
    %51 = stablehlo.constant dense<3.333333383e-02> : tensor<4x3xf32> loc("cross_entropy_grad")
    %52 = stablehlo.constant dense<9.333333323e-01> : tensor<4x3xf32> loc("cross_entropy_grad")
    %53 = stablehlo.select %50, %52, %51 : tensor<4x3xi1>, tensor<4x3xf32> loc("cross_entropy_grad")
    %54 = stablehlo.subtract %47, %53 : tensor<4x3xf32> loc("cross_entropy_grad")
    %55 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32> loc("cross_entropy_grad")
    %56 = stablehlo.multiply %54, %55 : tensor<4x3xf32> loc("cross_entropy_grad")
    %57 = stablehlo.dot_general %2, %56, contracting_dims = [0] x [0] : (tensor<4x6xf32>, tensor<4x3xf32>) -> tensor<6x3xf32> loc("matmul_kernel_grad")
    %58 = "stablehlo.all_reduce"(%57) ({
    ^bb0(%59: tensor<f32>, %60: tensor<f32>):
      %61 = stablehlo.add %59, %60 : tensor<f32>
      stablehlo.return %61 : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<6x3xf32>) -> tensor<6x3xf32> loc("replicas")
    %62 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<6x3xf32> loc("sgd/velocity/predictions/kernel")
    %63 = stablehlo.multiply %62, %58 : tensor<6x3xf32> loc("sgd/velocity/predictions/kernel")
    %64 = stablehlo.constant dense<8.999999762e-01> : tensor<6x3xf32> loc("sgd/velocity/predictions/kernel")
    %65 = stablehlo.multiply %1, %64 : tensor<6x3xf32> loc("sgd/velocity/predictions/kernel")
    %66 = stablehlo.subtract %65, %63 : tensor<6x3xf32> loc("sgd/velocity/predictions/kernel")
    %67 = stablehlo.add %0, %66 : tensor<6x3xf32> loc("predictions/kernel")
    return %30, %66, %67 : tensor<4xf32>, tensor<6x3xf32>, tensor<6x3xf32>
  }
}
