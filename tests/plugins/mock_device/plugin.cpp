#include "backend.h"

TENON_BACKEND(tenon::mock::MockBackend, "mock_device", "0.1", "Two devices whose memory the host cannot touch and whose work runs late, for tests")
