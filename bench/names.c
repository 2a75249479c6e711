/* names - see names.h */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "model/net.h"

/* The longer of two that begin alike comes first. */
static const struct {
  const char *name;
  bench_kind kind;
} kinds[BENCH_KINDS] = {{"infer_", BENCH_INFER},
                        {"frozen_step_", BENCH_FROZEN},
                        {"finetune_", BENCH_FINETUNE},
                        {"full_train_frozen_bn_", BENCH_FULL_FROZEN_BN},
                        {"full_train_", BENCH_FULL}};

bool bench_parse(const char *text, bench_name *name)
{
  for (int i = 0; i < BENCH_KINDS; i++) {
    size_t length = strlen(kinds[i].name);
    if (strncmp(text, kinds[i].name, length) != 0) continue;
    const char *network = text + length, *end = network + strlen(network);
    name->bf16 = end - network > 5 && strcmp(end - 5, "_bf16") == 0;
    const char *last = memrchr(network, '_', (size_t)(end - network) - (name->bf16 ? 5 : 0));
    if (last == NULL) return false;
    int letters = (int)(last - network);
    bool family = (network[0] == 'b' && letters == 2) || strncmp(network, "lite", 4) == 0;
    snprintf(name->model, sizeof name->model, "%s%.*s", family ? "efficientnet-" : "", letters,
             network);
    name->kind = kinds[i].kind;
    name->size = (int)strtol(last + 1, NULL, 10);
    return name->size > 0;
  }
  return false;
}

void bench_list_kinds(FILE *to)
{
  for (int i = 0; i < BENCH_KINDS; i++) fprintf(to, " %sNETWORK_SIZE", kinds[i].name);
}

double bench_forward_flops(const char *model, int size)
{
  tp__model_spec spec = {.name = model, .height = size, .width = size, .classes = BENCH_CLASSES};
  tp__net *net = NULL;
  double flops = 0;
  if (tp__net_build(&spec, false, &net, NULL) != TP_OK) return 0;
  for (tp__value v = 0; v < net->graph->count; v++) flops += tp__node_flops(net->graph, v);
  tp__net_free(net);
  return flops;
}

int bench_passes(bench_kind kind)
{
  return kind == BENCH_FULL || kind == BENCH_FULL_FROZEN_BN ? 3 : 1;
}
