/* nets - the networks: each a short function that adds its layers to a builder.
 *
 * A new network: write nets_NAME.c with one function of tp__net_fn's form, declare it here, add its
 * line to the table in net.c.
 */
#ifndef TP_NETS_H
#define TP_NETS_H

#include "net_layer.h"

/* Adds all layers, the head included; failures are in the builder. */
typedef void (*tp__net_fn)(tp__net_builder *b);

void tp__nets_efficientnet(tp__net_builder *b);
void tp__nets_efficientnet_timm(tp__net_builder *b);
void tp__nets_efficientnet_lite0(tp__net_builder *b);
void tp__nets_mobilenet_v2(tp__net_builder *b);
void tp__nets_resnet50(tp__net_builder *b);
void tp__nets_resnet50_v1_5(tp__net_builder *b);
void tp__nets_resnet50_v2(tp__net_builder *b);
void tp__nets_densenet121(tp__net_builder *b);
void tp__nets_densenet169(tp__net_builder *b);
void tp__nets_densenet201(tp__net_builder *b);

/* ---- what the EfficientNets share (nets_efficientnet.c) ---- */

/* One stage of the base network: blocks of the same width, the first one with the stride. */
typedef struct tp__stage {
  int kernel, repeats, filters, expand, stride;
} tp__stage;

enum { TP__EFFICIENTNET_STAGES = 7 };
extern const tp__stage tp__efficientnet_stage[TP__EFFICIENTNET_STAGES];

/* filters * width to the nearest multiple of 8, at least 8, never less than 0.9 of the exact
 * product. */
int tp__efficientnet_filters(int filters, double width);
/* repeats * depth, rounded up. */
int tp__efficientnet_repeats(int repeats, double depth);

#endif
