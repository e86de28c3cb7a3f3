// libtenon.so is the archive tenon_host_objects; a shared library needs a source of its own to be made.
