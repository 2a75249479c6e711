/* keep_module - a module that does not compile is kept for whoever has to find out why; see
 * pjrt_parts.h */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pjrt_parts.h"

/* The compiler names an operator in quotes, 'stablehlo.dot'. Writes it to name; false when it
 * names none. */
static bool find_operator(const char *message, char name[64])
{
  static const char *const dialect[] = {"stablehlo.", "mhlo.", "chlo.",
                                        "sdy.",       "func.", "builtin."};
  for (const char *p = strchr(message, '\''); p != NULL; p = strchr(p + 1, '\'')) {
    for (size_t i = 0; i < sizeof dialect / sizeof *dialect; i++) {
      if (strncmp(p + 1, dialect[i], strlen(dialect[i])) != 0) continue;
      size_t size = strcspn(p + 1, "'\n");
      if (p[1 + size] != '\'' || size >= 64) continue;
      snprintf(name, 64, "%.*s", (int)size, p + 1);
      return true;
    }
  }
  return false;
}

/* The module, and behind it as MLIR's comments what the compiler said. */
static bool write_module(FILE *file, const char *text, size_t length, const char *message)
{
  fwrite(text, 1, length, file);
  for (const char *line = message; *line != '\0';) {
    size_t size = strcspn(line, "\n");
    fprintf(file, "\n// %.*s", (int)size, line);
    line += size + (line[size] == '\n');
  }
  fprintf(file, "\n");
  return fflush(file) == 0 && ferror(file) == 0;
}

/* Under a name that nobody can have foreseen: the folder may be everybody's. */
static bool keep(char *path, const char *text, size_t length, const char *message)
{
  int fd = mkostemps(path, 5, O_CLOEXEC);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
  bool kept = file != NULL && write_module(file, text, length, message);
  if (file != NULL)
    fclose(file);
  else if (fd >= 0)
    close(fd);
  if (!kept && fd >= 0) unlink(path);
  return kept;
}

tp_status tp__keep_module(const char *text, size_t length, const char *folder, const char *message,
                          tp_error *err)
{
  const char *temporary = getenv("TMPDIR");
  if (folder == NULL || tp__make_folder(folder, NULL) != TP_OK)
    folder = temporary != NULL && temporary[0] == '/' ? temporary : "/tmp";
  char name[64], operator[80] = "";
  char *path = tp__format("%s/tepal-module-XXXXXX.mlir", folder);
  if (path == NULL) return tp__no_memory(err, strlen(folder));
  if (message == NULL) message = "";
  if (find_operator(message, name)) snprintf(operator, sizeof operator, "operator %s: ", name);
  tp_status status =
      keep(path, text, length, message)
          ? tp__at(err, TP_ERR_DEVICE, "the program does not compile; it is kept as %s: %s",
                   path, operator)
          : tp__at(err, TP_ERR_DEVICE,
                   "the program does not compile, and could not be kept in %s: %s",
                   folder, operator);
  free(path);
  return status;
}
