/* export - trained weights as a file that others open. */
#ifndef TP_EXPORT_H
#define TP_EXPORT_H

#include "checkpoint.h"

/* Writes weights as Keras' legacy .h5 or safetensors, by the name's end. For an official network
 * (spec.official_preprocessing) the statistics of the normalization layer are stored so that Keras,
 * which loads them into its plain graph, computes the same. */
tp_status tp__export(const char *path, const tp__identity *identity, const tp__tensors *weights,
                     tp_error *err) TP_CHECKED;

#endif
