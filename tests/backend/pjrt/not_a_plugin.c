/* not_a_plugin - a library without GetPjrtApi; also the fake CUDA runtime of test_search.c */
__attribute__((visibility("default"))) int tepal_test_not_a_plugin(void);

int tepal_test_not_a_plugin(void)
{
  return 1;
}
