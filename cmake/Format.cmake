# Checks or applies .clang-format to all sources. Run with -D SOURCE=<tree> -D ACTION=check|apply.
cmake_minimum_required(VERSION 3.25)
set(version 14) # of Debian 12; each version formats a little differently

find_program(clang_format NAMES clang-format-${version} clang-format)
if(NOT clang_format)
    message(NOTICE "skipped: there is no clang-format")
    return()
endif()
execute_process(COMMAND ${clang_format} --version OUTPUT_VARIABLE found)
if(NOT found MATCHES "version ${version}\\.")
    message(NOTICE "skipped: clang-format ${version} is wanted, found: ${found}")
    return()
endif()

set(files)
foreach(folder base traces models schedule sim exec cli bench tests)
    file(GLOB_RECURSE found ${SOURCE}/${folder}/*.c ${SOURCE}/${folder}/*.h
        ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.cu)
    list(APPEND files ${found})
endforeach()
if(ACTION STREQUAL apply)
    execute_process(COMMAND ${clang_format} -i ${files} COMMAND_ERROR_IS_FATAL ANY)
else()
    execute_process(COMMAND ${clang_format} --dry-run -Werror ${files} RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "./dev format puts this right")
    endif()
endif()
