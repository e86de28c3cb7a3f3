"""``tenon run NAME.tnx``: exported programs without Python."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


@pytest.fixture
def exported(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU()).eval()
    x = torch.randn(3, 8)
    tenon.export(net, (x,), input_names=["x"]).save(tmp_path / "net.tnx")
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "wrong.npy", np.zeros((3, 9), np.float32))
    with torch.no_grad():
        return tmp_path, net(x).numpy()


def test_a_program_runs_on_files(exported, tenon_command):
    folder, want = exported
    done = tenon_command("run", folder / "net.tnx", "--input", f"x={folder}/x.npy", "--output", f"y={folder}/y.npy", "--json")
    assert done.status == 0, done.err
    assert done.json["outputs"][0]["name"] == "output"
    np.testing.assert_allclose(np.load(folder / "y.npy"), want, rtol=1e-5, atol=1e-6)
    done = tenon_command("verify", folder / "net.tnx")
    assert done.status == 0 and "1 inputs, 1 outputs" in done.out


def test_a_program_whose_batch_varies_runs_on_files_of_other_sizes(tmp_path, tenon_command):
    tenon.export(lambda x: x * 2 + 1, (torch.ones(3, 8),), dynamic_shapes={"x": {0: "batch"}}).save(tmp_path / "net.tnx")
    np.save(tmp_path / "x.npy", np.full((7, 8), 3, np.float32))
    done = tenon_command("run", tmp_path / "net.tnx", "--input", f"x={tmp_path}/x.npy", "--output", f"output={tmp_path}/y.npy")
    assert done.status == 0, done.err
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full((7, 8), 7, np.float32))


def test_what_does_not_fit_is_refused(exported, tenon_command):
    folder, _ = exported
    done = tenon_command("run", folder / "net.tnx", "--input", f"x={folder}/wrong.npy")
    assert done.status == 1 and "[3, 9]" in done.err
    done = tenon_command("run", folder / "net.tnx", "--input", f"z={folder}/x.npy")
    assert done.status == 2 and "no input 'z'" in done.err


def test_a_damaged_program_is_refused(exported, tenon_command):
    folder, _ = exported
    path = folder / "net.tnx"
    bytes_ = path.read_bytes()
    path.write_bytes(bytes_[:-1] + bytes([bytes_[-1] ^ 1]))
    done = tenon_command("run", path)
    assert done.status == 1 and "'constants' is damaged" in done.err
