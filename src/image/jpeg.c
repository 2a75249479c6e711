/* jpeg - decoding through libjpeg-turbo's libjpeg interface, with the numbers of TensorFlow's
 * decode_jpeg(channels=3).
 *
 * TensorFlow's defaults are the fast integer DCT and fancy upsampling. CMYK and YCCK are multiplied
 * into RGB by whole division by 255, inverted when there is no Adobe marker. Data that end before
 * the end marker are an error, damage inside the entropy-coded data (a warning in libjpeg) is not.
 * Checked bit for bit on the odd files of ../shared/data/oddjpeg.
 *
 * libjpeg reports errors by a callback that must not return, hence setjmp: everything that lives
 * across it is in one struct of the caller's frame, and only `run` calls setjmp.
 */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "parts.h"

enum {
  max_scans = 500, /* real files have about ten; each pass over a large picture costs a second */
  rows_at_once = 8,
  memory_limit = 1536 * 1000000, /* bytes for the coefficients of progressive files: six a pixel */
  first_rows_bytes =
      64 << 20 /* rows beyond are allocated as they arrive: a small file may claim a large size */
};

typedef struct reader {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  jmp_buf escape;
  const uint8_t *bytes;
  size_t size;
  const tp__decode_options *options; /* NULL: only the header */
  tp__picture *picture;
  int *orientation;
  tp_status status;
  tp_error *err;
} reader;

_Noreturn static void give_up(reader *r, tp_status status)
{
  r->status = status;
  longjmp(r->escape, 1);
}

_Noreturn static void on_error(j_common_ptr jpeg)
{
  reader *r = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY)
    give_up(r, tp__fail(r->err, TP_ERR_INTERNAL, "out of memory while decoding a JPEG"));
  size_t at = r->size - r->source.bytes_in_buffer;
  unsigned row = r->jpeg.output_scanline, rows = r->jpeg.output_height;
  if (row > 0)
    give_up(r, tp__fail(r->err, TP_ERR_DATA, "damaged JPEG at byte %zu of %zu, row %u of %u: %s",
                        at, r->size, row, rows, text));
  give_up(r,
          tp__fail(r->err, TP_ERR_DATA, "damaged JPEG at byte %zu of %zu: %s", at, r->size, text));
}

/* Warnings are counted by libjpeg, and nothing is printed. */
static void on_message(j_common_ptr jpeg, int level)
{
  if (level < 0) jpeg->err->num_warnings++;
}

static void on_output(j_common_ptr jpeg)
{
  (void)jpeg;
}

static void source_nothing(j_decompress_ptr jpeg)
{
  (void)jpeg;
}

/* All bytes were there from the start, so a wish for more means that the file is cut. */
static boolean source_more(j_decompress_ptr jpeg)
{
  reader *r = jpeg->client_data;
  unsigned row = jpeg->output_scanline;
  unsigned rows = jpeg->output_height > 0 ? jpeg->output_height : jpeg->image_height;
  if (rows > 0)
    give_up(
        r,
        tp__fail(r->err, TP_ERR_DATA,
                 "the JPEG is cut short: its %zu bytes end at row %u of %u, without an end marker",
                 r->size, row, rows));
  give_up(r, tp__fail(r->err, TP_ERR_DATA,
                      "the JPEG is cut short: its %zu bytes end within the header", r->size));
}

static void source_skip(j_decompress_ptr jpeg, long count)
{
  if (count <= 0) return;
  if ((size_t)count > jpeg->src->bytes_in_buffer) (void)source_more(jpeg);
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= (size_t)count;
}

static void on_progress(j_common_ptr jpeg)
{
  reader *r = jpeg->client_data;
  if (r->jpeg.input_scan_number > max_scans)
    give_up(r,
            tp__fail(r->err, TP_ERR_DATA,
                     "the JPEG has more than %d scans: damaged, or made to waste time", max_scans));
}

static void start(reader *r, bool metadata)
{
  r->jpeg.err = jpeg_std_error(&r->errors);
  r->jpeg.client_data = r;
  r->errors.error_exit = on_error;
  r->errors.emit_message = on_message;
  r->errors.output_message = on_output;
  jpeg_create_decompress(&r->jpeg); /* clears all but err and client_data */
  r->jpeg.mem->max_memory_to_use = memory_limit;
  r->source = (struct jpeg_source_mgr){.next_input_byte = r->bytes,
                                       .bytes_in_buffer = r->size,
                                       .init_source = source_nothing,
                                       .fill_input_buffer = source_more,
                                       .skip_input_data = source_skip,
                                       .resync_to_restart = jpeg_resync_to_restart,
                                       .term_source = source_nothing};
  r->jpeg.src = &r->source;
  r->progress.progress_monitor = on_progress;
  r->jpeg.progress = &r->progress;
  if (metadata) jpeg_save_markers(&r->jpeg, JPEG_APP0 + 1, 0xFFFF);
  (void)jpeg_read_header(&r->jpeg, TRUE);
}

static int saved_orientation(const struct jpeg_decompress_struct *jpeg)
{
  for (const struct jpeg_marker_struct *m = jpeg->marker_list; m != NULL; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0)
      return tp__exif_orientation(m->data + 6, m->data_length - 6);
  return 1;
}

/* Room for the rows up to `until`, all of them while they are not large. */
static void need_rows(reader *r, unsigned until)
{
  size_t row = (size_t)r->jpeg.output_width * 3, all = row * r->jpeg.output_height;
  size_t have = r->picture->rgb.capacity, need = row * until;
  if (have >= need) return;
  size_t wanted = have * 2 > first_rows_bytes ? have * 2 : first_rows_bytes;
  if (wanted < need) wanted = need;
  if (wanted > all) wanted = all;
  if (r->picture->rgb.max < all) r->picture->rgb.max = all;
  tp_status status = tp__buffer_reserve(&r->picture->rgb, wanted, r->err);
  if (status != TP_OK) give_up(r, status);
}

static void multiply_cmyk(const uint8_t *in, unsigned width, bool inverted, uint8_t *out)
{
  for (unsigned x = 0; x < width; x++, in += 4, out += 3) {
    int k = inverted ? in[3] : 255 - in[3];
    for (int c = 0; c < 3; c++) out[c] = (uint8_t)(k * (inverted ? in[c] : 255 - in[c]) / 255);
  }
}

static void read_rows(reader *r)
{
  struct jpeg_decompress_struct *j = &r->jpeg;
  const size_t row = (size_t)j->output_width * 3;
  const bool cmyk = j->out_color_space == JCS_CMYK;
  JSAMPARRAY four = NULL;
  if (cmyk) four = j->mem->alloc_sarray((j_common_ptr)j, JPOOL_IMAGE, j->output_width * 4, 1);
  while (j->output_scanline < j->output_height) {
    unsigned first = j->output_scanline, count = cmyk ? 1 : rows_at_once;
    if (count > j->output_height - first) count = j->output_height - first;
    need_rows(r, first + count);
    JSAMPROW rows[rows_at_once] = {NULL};
    for (unsigned i = 0; i < count; i++) rows[i] = r->picture->rgb.data + (first + i) * row;
    if (jpeg_read_scanlines(j, cmyk ? four : rows, count) == 0) (void)source_more(j);
    if (cmyk) multiply_cmyk(four[0], j->output_width, j->saw_Adobe_marker, rows[0]);
  }
}

/* Other eighths than these have no fast inverse transform: they take longer than the whole. */
int tp__jpeg_eighths(const tp__decode_options *options, int height, int width, int orientation)
{
  bool lies = options->exif_rotate && orientation >= 5; /* its sides change places afterwards */
  int64_t least_height = lies ? options->least_width : options->least_height;
  int64_t least_width = lies ? options->least_height : options->least_width;
  for (int n = 1; n < 8 && least_height > 0 && least_width > 0; n *= 2)
    if (((int64_t)height * n + 7) / 8 >= least_height &&
        ((int64_t)width * n + 7) / 8 >= least_width)
      return n;
  return 8;
}

static void decode(reader *r)
{
  struct jpeg_decompress_struct *j = &r->jpeg;
  bool four = j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK;
  j->out_color_space = four ? JCS_CMYK : JCS_RGB;
  j->dct_method = r->options->accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
  j->do_fancy_upsampling = TRUE;
  tp_status status =
      tp__pixels_check(j->image_height, j->image_width, r->options->max_pixels, r->err);
  if (status != TP_OK) give_up(r, status);
  j->scale_num = (unsigned)tp__jpeg_eighths(r->options, (int)j->image_height, (int)j->image_width,
                                            r->orientation != NULL ? *r->orientation : 1);
  j->scale_denom = 8;
  if (!jpeg_start_decompress(j)) (void)source_more(j);
  if (j->output_components != (four ? 4 : 3))
    give_up(r, tp__fail(r->err, TP_ERR_DATA, "a JPEG of %d channels cannot be turned into RGB",
                        j->num_components));
  read_rows(r);
  if (!jpeg_finish_decompress(j)) (void)source_more(j);
  r->picture->height = (int)j->output_height;
  r->picture->width = (int)j->output_width;
  r->picture->rgb.size = (size_t)j->output_height * j->output_width * 3;
}

static tp_status run(reader *r)
{
  if (setjmp(r->escape) == 0) {
    start(r, r->orientation != NULL);
    if (r->orientation != NULL) *r->orientation = saved_orientation(&r->jpeg);
    if (r->options != NULL) decode(r);
  }
  jpeg_destroy_decompress(&r->jpeg);
  return r->status;
}

tp_status tp__jpeg_header(const uint8_t *bytes, size_t size, int *height, int *width,
                          int *orientation, tp_error *err)
{
  reader r = {.bytes = bytes, .size = size, .orientation = orientation, .err = err};
  TP__TRY(run(&r));
  *height = (int)r.jpeg.image_height;
  *width = (int)r.jpeg.image_width;
  return TP_OK;
}

tp_status tp__jpeg_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                          tp__picture *picture, int *orientation, tp_error *err)
{
  reader r = {.bytes = bytes,
              .size = size,
              .options = options,
              .picture = picture,
              .orientation = orientation,
              .err = err};
  return run(&r);
}
