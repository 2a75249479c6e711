/* prepare - what is done to data sets before training: inspect, pack, draw.
 *
 *   inspect   reads everything once and reports counts, sizes, faults, duplicates
 *   pack      photos (folders, CSV) to TFRecord shards with a seeded, stratified split
 *   draw      procedural flowers by seed, for the demo and for tests: no photo is needed to try
 * tepal
 *
 * Neighbours: data (catalog, shard writer), image (decode, resize, encode). The public structs of
 * tepal.h are used as they are.
 */
#ifndef TP_PREPARE_H
#define TP_PREPARE_H

#include "base/job.h"
#include "tepal.h"

tp_status tp__inspect(const tp__job *job, const tp_inspect_options *options,
                      tp_inspection *inspection, tp_error *err) TP_CHECKED;
tp_status tp__pack(const tp__job *job, const tp_pack_options *options, tp_error *err) TP_CHECKED;
tp_status tp__draw(const tp__job *job, const tp_draw_options *options, tp_error *err) TP_CHECKED;

/* One flower: rgb [size,size,3]. A function of its arguments. species 0...31, size 16...4096. */
tp_status tp__draw_flower(int species, uint64_t seed, uint64_t number, int size, uint8_t *rgb,
                          tp_error *err) TP_CHECKED;
const char *tp__draw_name(int species);

#endif
