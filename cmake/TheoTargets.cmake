# Compiler settings shared by every target, and the helpers that declare layers, kernels, programs and tests.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(theo_flags INTERFACE)
target_compile_options(theo_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
  # Contraction differs between compilers: off everywhere, switched on for the SIMD files alone (theo_kernel_sources).
  -ffp-contract=off
  -fno-math-errno -fno-trapping-math)
if(THEO_WERROR)
  target_compile_options(theo_flags INTERFACE -Werror)
endif()
if(THEO_SANITIZE)
  target_compile_options(theo_flags INTERFACE -fsanitize=${THEO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(theo_flags INTERFACE -fsanitize=${THEO_SANITIZE})
endif()
if(THEO_BUILD_FUZZERS) # coverage of the library's own code guides the fuzzers
  target_compile_options(theo_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(theo_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(theo_flags INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(theo_flags INTERFACE _GNU_SOURCE)

# theo_layer(NAME source...): an object library theo_NAME, one for each folder of src/.
function(theo_layer name)
  if(NOT ARGN)
    return()
  endif()
  add_library(theo_${name} OBJECT ${ARGN})
  target_link_libraries(theo_${name} PRIVATE theo_flags Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY THEO_LAYERS theo_${name})
endfunction()

# theo_kernel_sources(FLAGS "flags" source...): instruction-set flags belong to single files. -O3 in every build type but Debug:
# register tiles are arrays that exist only once their loops are unrolled. Instrumented, the unrolled loops take minutes to compile:
# sanitizer builds keep the loops.
function(theo_kernel_sources)
  cmake_parse_arguments(A "" "FLAGS" "" ${ARGN})
  separate_arguments(A_FLAGS)
  if(THEO_SANITIZE)
    list(APPEND A_FLAGS -O1 -DTHEO_NO_UNROLL)
  else()
    list(APPEND A_FLAGS $<$<NOT:$<CONFIG:Debug>>:-O3>)
  endif()
  set_source_files_properties(${A_UNPARSED_ARGUMENTS} PROPERTIES COMPILE_OPTIONS "${A_FLAGS};-ffp-contract=fast")
endfunction()

# theo_unit_test(NAME source...): a plain-main test with access to internal symbols. Exit 77 = skipped.
function(theo_unit_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE theo_flags theo_static)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS unit TIMEOUT 1200)
endfunction()

# theo_test_label(NAME label): one more label of a test.
function(theo_test_label name label)
  set_property(TEST ${name} APPEND PROPERTY LABELS ${label})
endfunction()
