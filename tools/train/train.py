#!/usr/bin/env python3
"""Train superpoint-open: SuperPoint's layers and names, MagicPoint's detector (MIT), descriptors of our own.

The trunk up to the third pool is MagicPoint's and stays. conv4 and the detector head follow at 0.3 of the rate, held to their
frozen copies by distillation (KL divergence of the 65-way cell softmax on the same view, weight 2). The descriptor head learns
from random values by a dual-softmax cross-entropy (temperature 0.07) between two random views of one photo, at up to 256 points:
half homographically adapted keypoints of MagicPoint, half uniform; points nearer than 6 pixels are no negatives.
"""
import argparse
import math
import os
import random
import sys
import time

import cv2
import numpy as np
import torch
import torch.nn.functional as F

import networks
import views

TEMPERATURE, NEAR, DISTILLATION = 0.07, 6.0, 2.0
POINTS, MARGIN = 256, 8


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--images", required=True, metavar="LIST", help="text file with the path of one photo per line")
    p.add_argument("--teacher", required=True, help="MagicPoint with batch norm (mg_coco_s2.pth)")
    p.add_argument("--detector", required=True, help="the same with batch norm folded into plain layers (safetensors)")
    p.add_argument("--out", required=True, metavar="DIR", help="folder for final.safetensors, last.safetensors and log.txt")
    p.add_argument("--minutes", type=float, default=45, help="length of the training, and of the cosine of its rate (default 45)")
    p.add_argument("--iterations", type=int, default=0, help="stop after so many, whatever the time (default: off)")
    p.add_argument("--crops", type=int, default=1800, help="photo crops that get keypoints of the teacher (default 1800)")
    p.add_argument("--adapt", type=int, default=8, help="random homographies of the teacher's adaptation (default 8)")
    p.add_argument("--batch", type=int, default=8, help="photos per step, two views each (default 8)")
    p.add_argument("--size", default="192x256", metavar="HxW", help="size of a crop, multiples of 8 (default 192x256)")
    p.add_argument("--rate", type=float, default=2e-3, help="learning rate of AdamW (default 2e-3)")
    p.add_argument("--bf16", action="store_true", help="bfloat16 arithmetic, for processors that have it")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args(arguments)
    try:
        options.height, options.width = (int(v) for v in options.size.split("x"))
    except ValueError:
        p.error(f"--size {options.size}: expected HxW, such as 192x256")
    if options.height % 8 or options.width % 8 or min(options.height, options.width) < 64:
        p.error(f"--size {options.size}: both sides must be multiples of 8 and at least 64")
    return options


class Log:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")

    def __call__(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()


@torch.no_grad()
def adapted_heat(teacher, gray, options):
    """Mean score map of the teacher over the identity and random homographies (homographic adaptation, arXiv:1712.07629)."""
    h, w = gray.shape
    matrices = [np.eye(3)] + [views.random_homography(h, w, 0.2, 0.35, 0.15, 0.05) for _ in range(options.adapt)]
    batch = np.stack([cv2.warpPerspective(gray, m, (w, h)) for m in matrices])
    x = (torch.from_numpy(batch).float()[:, None] / 255).to(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        scores = teacher(x)
    total, count = np.zeros((h, w), np.float32), np.zeros((h, w), np.float32)
    inside = np.zeros((h, w), np.float32)
    inside[4:-4, 4:-4] = 1
    for matrix, score in zip(matrices, scores.float()[:, 0].numpy()):
        back = np.linalg.inv(matrix)
        total += cv2.warpPerspective(score, back, (w, h))
        count += cv2.warpPerspective(inside, back, (w, h))
    return total / np.maximum(count, 1)


def peaks(heat, threshold=0.015, radius=4, most=400):
    """Local maxima [N, 2] x, y above the threshold, strongest first."""
    s = torch.from_numpy(heat)[None, None]
    keep = (s == F.max_pool2d(s, 2 * radius + 1, 1, radius)) & (s > threshold)
    ys, xs = torch.nonzero(keep[0, 0], as_tuple=True)
    order = s[0, 0, ys, xs].argsort(descending=True)[:most]
    return np.c_[xs[order].numpy(), ys[order].numpy()].astype(np.float64)


def label_crops(teacher, files, options, log):
    """[(crop, keypoints)]: what the training draws from."""
    out, tried, start = [], 0, time.time()
    while len(out) < options.crops and tried < 20 * options.crops:
        crop = views.random_crop(files[tried % len(files)], options.height, options.width)
        tried += 1
        if crop is not None:
            out.append((crop, peaks(adapted_heat(teacher, crop, options))))
            if len(out) % 200 == 0:
                log(f"{len(out)} crops, {np.mean([len(p) for _, p in out]):.0f} points each, {time.time() - start:.0f} s")
    if not out:
        sys.exit("none of the files in --images is a photo of at least 100x100 pixels")
    return out


def make_batch(crops, options):
    """Pictures [2B, 1, H, W], cells that count [2B, H/8, W/8], corresponding points of the two views [B, K, 2] and which hold."""
    h, w = options.height, options.width
    pictures, cells, first, second, valid = [], [], [], [], []
    for _ in range(options.batch):
        gray, points = random.choice(crops)
        pair = [views.random_view(gray, keep_chance=0.3), views.random_view(gray)]
        for matrix, picture in pair:
            pictures.append(picture)
            cells.append(views.visible_cells(matrix, h, w))
        n = min(len(points), POINTS // 2)
        chosen = np.r_[points[np.random.permutation(len(points))[:n]].reshape(-1, 2), np.random.rand(POINTS - n, 2) * [w, h]]
        a, b = (views.warp_points(matrix, chosen) for matrix, _ in pair)
        limit = [w - MARGIN - 1, h - MARGIN - 1]
        first.append(a)
        second.append(b)
        valid.append(((a > MARGIN) & (a < limit) & (b > MARGIN) & (b < limit)).all(1))
    x = (torch.from_numpy(np.stack(pictures)).float()[:, None] / 255).to(memory_format=torch.channels_last)
    as_tensor = lambda arrays: torch.from_numpy(np.stack(arrays))
    return x, as_tensor(cells), as_tensor(first), as_tensor(second), as_tensor(valid)


def distillation_loss(logits, target, cells):
    """KL divergence from the frozen detector's cell softmax, mean over the cells that count."""
    p = F.softmax(target, 1)
    divergence = (p * (F.log_softmax(target, 1) - F.log_softmax(logits, 1))).sum(1)
    weight = cells.float()
    return (divergence * weight).sum() / weight.sum().clamp(min=1)


def descriptor_loss(maps, first, second, valid):
    """(loss, share of points whose best match is the right one)."""
    a, b = networks.sample_descriptors(maps[0::2], first), networks.sample_descriptors(maps[1::2], second)
    losses, right = [], []
    for k in range(len(a)):
        v = valid[k]
        if v.sum() < 16:
            continue
        similarity = a[k][:, v].t() @ b[k][:, v] / TEMPERATURE
        other = ~torch.eye(int(v.sum()), dtype=torch.bool)
        rows = similarity.masked_fill((torch.cdist(second[k][v], second[k][v]) < NEAR) & other, -1e4)
        columns = similarity.t().masked_fill((torch.cdist(first[k][v], first[k][v]) < NEAR) & other, -1e4)
        truth = torch.arange(len(rows))
        losses.append((F.cross_entropy(rows, truth) + F.cross_entropy(columns, truth)) / 2)
        right.append((rows.argmax(1) == truth).float().mean().item())
    if not losses:
        return maps.sum() * 0, 0.0
    return torch.stack(losses).mean(), float(np.mean(right))


def train(net, crops, options, log):
    """Runs until the time or the iterations are up; returns the number of iterations."""
    optimiser = torch.optim.AdamW([{**g, "lr": options.rate} for g in net.parameter_groups()], weight_decay=1e-4)
    start, iteration, mean = time.time(), 0, {}
    length = options.minutes * 60
    while time.time() - start < length and not (options.iterations and iteration >= options.iterations):
        progress = iteration / options.iterations if options.iterations else (time.time() - start) / length
        rate = options.rate * min(1, iteration / 200) * (0.495 * (1 + math.cos(math.pi * progress)) + 0.01)
        for group in optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        x, cells, first, second, valid = make_batch(crops, options)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            logits, maps, target = net(x)
        detector = DISTILLATION * distillation_loss(logits.float(), target.float(), cells)
        descriptor, accuracy = descriptor_loss(maps.float(), first, second, valid)
        optimiser.zero_grad()
        (detector + 0.5 * descriptor).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        iteration += 1
        for name, value in (("detector", float(detector)), ("descriptor", float(descriptor)), ("matched", accuracy)):
            mean[name] = 0.98 * mean.get(name, value) + 0.02 * value
        if iteration % 200 == 0:
            words = " ".join(f"{k} {v:.4f}" for k, v in mean.items())
            log(f"iteration {iteration} rate {rate:.1e} {words} {(time.time() - start) / iteration:.2f} s each")
        if iteration % 500 == 0:
            networks.save_safetensors(os.path.join(options.out, "last.safetensors"), net.all_tensors(), {"iteration": str(iteration)})
    return iteration


def main(arguments=None):
    options = parse(arguments)
    torch.set_flush_denormal(True)
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(1)
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(options.seed)
    os.makedirs(options.out, exist_ok=True)
    log = Log(os.path.join(options.out, "log.txt"))
    with open(options.images, encoding="utf-8") as f:
        files = [line.strip() for line in f if line.strip()]
    if not files:
        sys.exit(f"{options.images}: no photo is named there")
    random.shuffle(files)
    teacher = networks.MagicPoint(torch.load(options.teacher, map_location="cpu", weights_only=True))
    crops = label_crops(teacher, files, options, log)
    net = networks.Student(networks.load_safetensors(options.detector)).to(memory_format=torch.channels_last)
    iterations = train(net, crops, options, log)
    path = os.path.join(options.out, "final.safetensors")
    networks.save_safetensors(path, net.all_tensors(), {"model": "superpoint-open", "iterations": str(iterations)})
    log(f"{path}: {iterations} iterations")
    log.file.close()


if __name__ == "__main__":
    main()
