#include <stdio.h>
#include "lauxlib.h"
#include "lualib.h"

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_newtable(L);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  if (argc < 2 || luaL_dofile(L, argv[1])) {
    fprintf(stderr, "lua: %s\n", argc < 2 ? "no script" : lua_tostring(L, -1));
    return 1;
  }
  lua_close(L);
  return 0;
}
