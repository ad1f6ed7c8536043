/*
 * Lua: runs a script, with its arguments in the global `arg`, and sums the string that the script returns.
 *
 * usage: lua SCRIPT ARGUMENT…
 */
#include "bench.h"
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static void set_arguments(lua_State *lua, int argc, char **argv)
{
    lua_createtable(lua, argc, 0);
    for (int i = 2; i < argc; i++) {
        lua_pushstring(lua, argv[i]);
        lua_rawseti(lua, -2, i - 1);
    }
    lua_setglobal(lua, "arg");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("usage: lua SCRIPT ARGUMENT…");
    lua_State *lua = luaL_newstate();
    if (!lua)
        die("no Lua state");
    luaL_openlibs(lua);
    set_arguments(lua, argc, argv);
    if (luaL_dofile(lua, argv[1]) != LUA_OK)
        die("%s", lua_tostring(lua, -1));

    size_t length = 0;
    const char *result = lua_tolstring(lua, -1, &length);
    if (!result)
        die("the script returned no string");
    puts(result);
    print_checksum(checksum_bytes(CHECKSUM_START, result, length));
    lua_close(lua);
    return 0;
}
