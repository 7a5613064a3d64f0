# Writes OUTPUT, a header with the commit of the tree SOURCE, where it has changed: run at every build.
#   cmake -D SOURCE=<tree> -D OUTPUT=<header> -P Commit.cmake
set(commit unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --match=
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
        set(commit unknown)
    endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define LONGHAUL_COMMIT \"${commit}\"\n")
