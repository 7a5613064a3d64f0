# Runs clang-tidy (.clang-tidy) over every source that the build compiles.
# Run with -D SOURCE=<tree> -D BUILD=<build folder with compile_commands.json>, and -D DAYS=<n> for the n-th part of
# the sources that is today's (by $CHECK_DAY, if it is set).
cmake_minimum_required(VERSION 3.25)

find_program(clang_tidy NAMES clang-tidy-14 clang-tidy)
if(NOT clang_tidy)
    message(NOTICE "skipped: there is no clang-tidy")
    return()
endif()
set(folders "(base|traces|models|schedule|sim|predict|exec|cli|bench|tests)")
file(STRINGS ${BUILD}/compile_commands.json sources REGEX "^ *\"file\": ")
list(TRANSFORM sources REPLACE "^ *\"file\": \"(.*)\",?$" "\\1")
list(FILTER sources INCLUDE REGEX "^${SOURCE}/${folders}/.*[.](c|cpp)$")
list(REMOVE_DUPLICATES sources)
if(DAYS AND NOT DEFINED ENV{CHECK_ALL})
    if(DEFINED ENV{CHECK_DAY})
        set(day $ENV{CHECK_DAY})
    else()
        string(TIMESTAMP day "%s" UTC)
        math(EXPR day "${day} / 86400")
    endif()
    set(today)
    foreach(source ${sources})
        math(EXPR day "${day} + 1")
        math(EXPR rest "${day} % ${DAYS}")
        if(rest EQUAL 0)
            list(APPEND today ${source})
        endif()
    endforeach()
    set(sources ${today})
endif()
list(JOIN sources "\n" sources)
file(WRITE ${BUILD}/tidy.txt "${sources}\n")
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
# Sixteen sources a process: starting one takes as long as looking at a source.
execute_process(
    COMMAND xargs -n 16 -P ${processors} ${clang_tidy} --quiet -p ${BUILD}
    INPUT_FILE ${BUILD}/tidy.txt
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    message(NOTICE "${output}${errors}")
    message(FATAL_ERROR "clang-tidy found faults")
endif()
