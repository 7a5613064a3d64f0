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
foreach(folder base traces models schedule sim exec predict cli bench examples tests)
    file(GLOB_RECURSE found ${SOURCE}/${folder}/*.c ${SOURCE}/${folder}/*.h
        ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.cu)
    list(APPEND files ${found})
endforeach()
if(ACTION STREQUAL apply)
    set(arguments -i)
else()
    set(arguments --dry-run -Werror)
endif()
execute_process(COMMAND ${clang_format} ${arguments} ${files} RESULT_VARIABLE code
    ERROR_VARIABLE output)
if(code EQUAL 0)
    return()
endif()
# One by one, because this version falls over some tables whose rows differ in length, and does not
# say where.
foreach(file ${files})
    execute_process(COMMAND ${clang_format} ${arguments} ${file} RESULT_VARIABLE code
        ERROR_VARIABLE output)
    if(NOT code MATCHES "^[01]$")
        message(NOTICE "${file}: error: clang-format crashes here: put the table it trips over "
            "between /* clang-format off */ and /* clang-format on */")
    elseif(NOT code EQUAL 0)
        message(NOTICE "${file}: error: not formatted")
    endif()
endforeach()
message(FATAL_ERROR "./dev format puts right what is not a crash")
