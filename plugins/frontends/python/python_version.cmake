# Refuses interpreters of which the frontend does not know the insides, before anything is built. pyproject.toml says the same to pip.
if(Python_VERSION VERSION_LESS 3.11 OR Python_VERSION VERSION_GREATER_EQUAL 3.14)
  message(FATAL_ERROR "Tenon's Python frontend runs on CPython 3.11, 3.12 and 3.13; ${Python_EXECUTABLE} is ${Python_VERSION}. "
                      "Choose another with -DPython_EXECUTABLE=PATH, or leave the frontend out with -DTENON_PYTHON=OFF")
endif()
