"""Training loops of libraries with a compiled model give eager's losses and parameters, checkpoints with plain names. Skipped where a library is not installed."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402


def texts(count):
    generator = torch.Generator().manual_seed(0)
    return [{"input_ids": torch.randint(0, 50, (12,), generator=generator), "labels": torch.randint(0, 3, (), generator=generator)} for _ in range(count)]


def bert(transformers):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=3)
    return transformers.BertForSequenceClassification(config)


def parameters(module):
    return [p.detach().clone() for p in module.parameters()]


def with_trainer(wrap, folder):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    model = wrap(bert(transformers))
    settings = transformers.TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=8, logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no", seed=1,
        eval_strategy="epoch", gradient_accumulation_steps=2, lr_scheduler_type="cosine", warmup_steps=2,
    )  # fmt: skip
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=texts(30), eval_dataset=texts(20))
    trainer.train()
    log = trainer.state.log_history
    return [step.get("loss", step.get("eval_loss")) for step in log if "loss" in step or "eval_loss" in step], parameters(model), sorted(model.state_dict())


def with_accelerate(wrap, folder):
    accelerate, transformers = pytest.importorskip("accelerate"), pytest.importorskip("transformers")
    accelerate.state.AcceleratorState._reset_state(True)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = wrap(bert(transformers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(texts(30), batch_size=8))
    schedule, losses = torch.optim.lr_scheduler.StepLR(optimizer, 2), []
    torch.manual_seed(5)
    for _ in range(2):
        model.train()
        for batch in batches:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            losses.extend(model(**batch).loss.item() for batch in batches)
    return losses, parameters(model), sorted(accelerator.unwrap_model(model).state_dict())


def with_lightning(wrap, folder):
    lightning = pytest.importorskip("lightning")
    torch.manual_seed(0)

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = wrap(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)))
            self.losses = []

        def training_step(self, batch, number):
            x, y = batch
            loss = F.cross_entropy(self.net(x), y)
            self.losses.append(loss.item())
            return loss

        validation_step = training_step

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), 1e-2)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    generator = torch.Generator().manual_seed(0)
    batches = DataLoader([(torch.randn(6, generator=generator), torch.randint(0, 3, (), generator=generator)) for _ in range(30)], batch_size=8)
    model = Classifier()
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder, gradient_clip_val=0.5)
    trainer.fit(model, batches, batches)
    trainer.save_checkpoint(folder / "last.ckpt")
    return model.losses, parameters(model), sorted(torch.load(folder / "last.ckpt", weights_only=False)["state_dict"])


@pytest.mark.parametrize("train", [with_trainer, with_accelerate, with_lightning])
def test_a_compiled_model_trains_as_the_plain_one(train, tmp_path):
    want = train(lambda module: module, tmp_path)
    tenon.reset()
    got = train(tenon.compile, tmp_path)
    torch.testing.assert_close(got[0], want[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(got[1], want[1], rtol=1e-4, atol=1e-5)
    assert got[2] == want[2]
    stats = tenon.stats()
    assert (stats["eager_fallbacks"], stats["graph_breaks"]) == (0, 0)
    assert stats["graphs"] <= 4  # training and evaluation, each with a smaller last batch
