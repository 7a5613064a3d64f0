# Runs clang-tidy (.clang-tidy) over every source that the build compiles.
# Run with -D SOURCE=<tree> -D BUILD=<build folder with compile_commands.json>.
cmake_minimum_required(VERSION 3.25)

find_program(run_clang_tidy NAMES run-clang-tidy-14 run-clang-tidy)
if(NOT run_clang_tidy)
    message(NOTICE "skipped: there is no run-clang-tidy")
    return()
endif()
set(folders "(base|traces|models|schedule|sim|predict|exec|cli|bench|tests)")
execute_process(
    COMMAND ${run_clang_tidy} -quiet -p ${BUILD} "^${SOURCE}/${folders}/.*[.](c|cpp)$"
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    # One command line per file comes first; only findings are worth reading.
    string(REGEX REPLACE "(^|\n)[^\n]*clang-tidy[^\n]* -p=[^\n]*" "" output "${output}")
    string(ASCII 27 escape)
    string(REGEX REPLACE "${escape}[[][0-9;]*m" "" output "${output}")
    message(NOTICE "${output}")
    message(FATAL_ERROR "clang-tidy found faults")
endif()
