"""Golden cases of kind export: the public calls of theo/export.h through ctypes, and the files that they write, read back."""
import ctypes as c
import os
import sys
import tempfile

import numpy as np

import library as lib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import readers  # noqa: E402

f32p, i32p, u8p, voidp = c.POINTER(c.c_float), c.POINTER(c.c_int32), c.POINTER(c.c_uint8), c.c_void_p
TO_GLTF = np.diag([1.0, -1.0, -1.0, 1.0])


class DepthMap(c.Structure):
    _fields_ = [("width", c.c_int), ("height", c.c_int), ("depth", f32p), ("valid", u8p)]


class DisparityOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("low", c.c_double), ("high", c.c_double), ("infinity_is_far", c.c_bool)]


class Mesh(c.Structure):
    _fields_ = [("width", c.c_int), ("height", c.c_int), ("vertex_count", c.c_int64), ("pixels", i32p), ("face_count", c.c_int64),
                ("faces", i32p)]


class Vertices(c.Structure):
    _fields_ = [("count", c.c_int64), ("rows", i32p), ("positions", f32p), ("normals", f32p), ("colors", u8p)]


class Part(c.Structure):
    _fields_ = [("name", c.c_char_p), ("vertices", Vertices), ("faces", i32p), ("face_count", c.c_int64), ("texture", voidp),
                ("texture_bytes", c.c_size_t), ("texture_width", c.c_int), ("texture_height", c.c_int)]


class Camera(c.Structure):
    _fields_ = [("camera_to_world", c.c_double * 16), ("focal", c.c_double), ("width", c.c_int), ("height", c.c_int),
                ("color", c.c_uint8 * 3)]


class Scene(c.Structure):
    _fields_ = [("parts", c.POINTER(Part)), ("part_count", c.c_int), ("cameras", c.POINTER(Camera)), ("camera_count", c.c_int),
                ("camera_size", c.c_double), ("transform", c.POINTER(c.c_double))]


class Export:
    """theo/export.h with arrays instead of pointers."""

    def __init__(self, library, folder):
        self.library, self.theo, self.folder = library, library.theo, folder
        self.theo.theo_exr_available.restype = c.c_bool
        self.can_exr = self.theo.theo_exr_available()
        self.kept = []  # arrays that pointers lead to
        self.theo.theo_mesh_free.argtypes, self.theo.theo_mesh_free.restype = [voidp], None

    def path(self, name):
        return os.path.join(self.folder, name)

    def pointer(self, array, dtype, kind):
        """A pointer to the numbers of an array; NULL for None."""
        if array is None:
            return None
        array = np.ascontiguousarray(array, dtype)
        self.kept.append(array)
        return array.ctypes.data_as(c.POINTER(kind))

    def floats(self, array):
        return self.pointer(array, np.float32, c.c_float)

    def integers(self, array):
        return self.pointer(array, np.int32, c.c_int32)

    def bytes_of(self, array):
        return self.pointer(array, np.uint8, c.c_uint8)

    def map(self, depth, valid=None):
        depth = np.asarray(depth)
        return DepthMap(depth.shape[1], depth.shape[0], self.floats(depth), self.bytes_of(valid))

    def picture(self, function, *arguments):
        """The pixels of a picture that a call makes."""
        image = c.POINTER(lib.Image)()
        self.library.call(function, c.byref(image), *arguments)
        try:
            i = image.contents
            kind = np.uint16 if i.type == lib.U16 else np.uint8
            row = i.row_bytes // np.dtype(kind).itemsize
            pixels = np.ctypeslib.as_array(c.cast(i.pixels, c.POINTER(np.ctypeslib.as_ctypes_type(kind))), (i.height, row))
            pixels = pixels.reshape(i.height, i.width, i.channels).copy()
        finally:
            self.theo.theo_image_free(image)
        return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels

    def depth_picture(self, depth, valid):
        scale = c.c_double()
        return self.picture(self.theo.theo_picture_depth, c.byref(self.map(depth, valid)), c.byref(scale), None), scale.value

    def disparity_picture(self, depth, valid, infinity_is_far, quantiles):
        options, ends = DisparityOptions(), (c.c_double * 2)()
        self.theo.theo_disparity_options_init(c.byref(options))
        assert [options.low, options.high] == list(quantiles)
        options.infinity_is_far = infinity_is_far
        return self.picture(self.theo.theo_picture_disparity, c.byref(self.map(depth, valid)), c.byref(options), ends, None), list(ends)

    def normal_picture(self, normals, axes):
        height, width = normals.shape[:2]
        return self.picture(self.theo.theo_picture_normal, self.floats(normals), width, height, axes, None)

    def mask_picture(self, mask):
        return self.picture(self.theo.theo_picture_mask, self.bytes_of(mask), mask.shape[1], mask.shape[0])

    def spectral(self):
        table = (c.c_double * 768)()
        self.theo.theo_spectral_table(table)
        return np.array(table).reshape(256, 3)

    def edges(self, depth, valid, threshold):
        edge = np.empty(depth.shape, np.uint8)
        self.library.call(self.theo.theo_depth_edges, c.byref(self.map(depth, valid)), c.c_float(threshold), lib.pointer(edge, c.c_uint8), None)
        return edge

    def mesh(self, function, *arguments):
        """(pixel of each vertex, faces, colours of the faces by a picture)"""
        result = c.POINTER(Mesh)()
        self.library.call(function, c.byref(result), *arguments)
        m = result.contents
        pixels = np.ctypeslib.as_array(m.pixels, (m.vertex_count,)).copy() if m.vertex_count else np.zeros(0, np.int32)
        faces = np.ctypeslib.as_array(m.faces, (m.face_count, 3)).copy() if m.face_count else np.zeros((0, 3), np.int32)

        def face_colors(rgb):
            colors = np.zeros((max(len(faces), 1), 3), np.uint8)
            self.theo.theo_mesh_face_colors(result, self.bytes_of(rgb), lib.pointer(colors, c.c_uint8))
            return colors[:len(faces)]

        face_colors.mesh = result
        return pixels, faces, face_colors

    def free_mesh(self, face_colors):
        self.theo.theo_mesh_free(face_colors.mesh)

    def vertices(self, rows, positions, normals=None, colors=None):
        positions = np.asarray(positions, np.float32).reshape(-1, 3)
        count = len(positions) if rows is None else len(rows)
        return Vertices(count, self.integers(rows), self.floats(positions), self.floats(normals), self.bytes_of(colors))

    def write_ply(self, name, vertices, faces=None, face_colors=None):
        self.library.call(self.theo.theo_ply_write, self.path(name).encode(), c.byref(vertices), self.integers(faces),
                          self.bytes_of(face_colors), c.c_int64(0 if faces is None else len(faces)), b"golden", None)
        return readers.read_ply(self.path(name))

    def part(self, vertices, faces=None, texture=None, size=(0, 0)):
        part = Part(None, vertices, self.integers(faces), 0 if faces is None else len(faces), None, 0, size[1], size[0])
        if texture:
            part.texture = c.cast(self.bytes_of(np.frombuffer(texture, np.uint8)), voidp)
            part.texture_bytes = len(texture)
        return part

    def write_glb(self, name, parts, transform=None, cameras=()):
        matrix = None if transform is None else (c.c_double * 16)(*np.asarray(transform, float).ravel())
        scene = Scene((Part * max(len(parts), 1))(*parts), len(parts), (Camera * max(len(cameras), 1))(*cameras), len(cameras), 0, matrix)
        self.library.call(self.theo.theo_glb_write, self.path(name).encode(), c.byref(scene), None)
        return readers.Glb(self.path(name))

    def transform_from_view(self, camera_to_world):
        matrix, given = (c.c_double * 16)(), (c.c_double * 16)(*np.asarray(camera_to_world, float).ravel())
        self.library.call(self.theo.theo_glb_transform_from_view, matrix, given)
        return np.array(matrix).reshape(4, 4)

    def write_exr(self, name, array):
        channels = 1 if array.ndim == 2 else array.shape[2]
        self.library.call(self.theo.theo_exr_write, self.path(name).encode(), self.floats(array), array.shape[1], array.shape[0], channels, None)
        return readers.read_exr(self.path(name))


# ------------------------------------------------------------------ MoGe: one result


def threshold_of(item):
    threshold = item.spec["threshold"]
    return float("inf") if threshold is None else threshold


def surface(export, case, threshold):
    """The mesh of a case through a GLB file (glTF's axes, textured) and a PLY file, by the names of the golden data."""
    depth, points, normals, image = (case.input(name) for name in ("depth", "points", "normal", "image"))
    pixels, faces, face_colors = export.mesh(export.theo.theo_mesh_from_depth, c.byref(export.map(depth, case.input("mask"))),
                                             c.c_float(threshold), None)
    export.free_mesh(face_colors)
    vertices = export.vertices(pixels, points, normals, image)
    ply = export.write_ply("mesh.ply", vertices, faces)
    glb = export.write_glb("mesh.glb", [export.part(vertices, faces, b"\xff\xd8\xff texture", depth.shape)], TO_GLTF)
    found = {"counts": {"vertices": len(pixels), "faces": len(faces)}, "ply": ply, "faces": faces}
    if not len(pixels):
        found["valid"] = "meshes" not in glb.json
        return found
    m = glb.primitive(0)
    u, v = m["TEXCOORD_0"].T
    found.update(positions=m["POSITION"], normals=m["NORMAL"], uv=np.stack([u, 1 - v], 1), indices=m["indices"].reshape(-1, 3),
                 colors=readers.columns(ply["vertex"], "red", "green", "blue"))
    found["valid"] = (np.array_equal(faces, found["indices"]) and np.array_equal(ply["face"]["vertex_indices"], faces)
                      and np.array_equal(readers.columns(ply["vertex"], "x", "y", "z") * [1, -1, -1], m["POSITION"])
                      and np.array_equal(readers.columns(ply["vertex"], "nx", "ny", "nz"), normals.reshape(-1, 3)[pixels]))
    return found


def mesh_facts(mesh):
    """What the golden data says of a mesh."""
    facts = {**mesh["counts"], "first_faces": mesh["faces"][:6].tolist(), "vertex_mean": None, "bbox_min": None, "bbox_max": None}
    if mesh["counts"]["vertices"]:
        p = mesh["positions"].astype(float)
        facts.update(vertex_mean=p.mean(0), bbox_min=p.min(0), bbox_max=p.max(0))
    return facts


def mesh_verdicts(export, case, item, compare):
    mesh = surface(export, case, threshold_of(item))
    yield mesh["valid"], f"files of the mesh at {item.spec['threshold']} agree"
    if item.name == "mesh_counts":
        facts = mesh_facts(mesh)
        for name, want in item.value().items():
            got = facts[name]
            if want is None or isinstance(want, int):
                yield got == want, f"mesh {name} {got}, expected {want}"
            elif name != "first_faces" or want:
                yield compare(f"mesh {name}", got, want, item.tolerance())
    else:
        names = {"mesh_faces": "indices", "mesh_vertices": "positions", "mesh_uv_bottom_left_origin": "uv", "mesh_normals": "normals",
                 "mesh_colors": "colors"}
        yield item.verdict(mesh.get(names[item.name], []))


def exr_verdict(export, item, array, names):
    """Our file and the golden one hold the same numbers."""
    got = export.write_exr(f"{item.name}.exr", array)
    want = readers.read_exr(item.path())
    same = set(got) == set(want) == set(names) and all(got[n].tobytes() == want[n].tobytes() for n in names)
    return same, f"{item.name}: {'the same' if same else 'other'} numbers in the file"


def moge_verdicts(export, case, compare):
    depth, mask, normals = (case.input(name) for name in ("depth", "mask", "normal"))
    picture, scale = export.depth_picture(depth, mask)
    masked, ends = export.disparity_picture(depth, mask, False, case.options["quantiles"])
    published, _ = export.disparity_picture(depth, None, True, case.options["quantiles"])
    table = export.spectral()
    got = {
        "valid": int((picture > 0).sum()), "depth_png16": picture, "depth_png_scale": scale, "disp_quantiles": ends,
        "spectral_lut_f64": table, "spectral_lut_u8": np.floor(255 * table).astype(np.uint8),
        "normal_png_http": export.normal_picture(normals, 0), "normal_vis_upstream": export.normal_picture(normals, 1),
        "mask_png": export.mask_picture(mask),
    }
    for item in case.expected:
        if item.name == "edge":
            whole = item.spec["on"] == "depth_dense"
            yield item.verdict(export.edges(case.input(item.spec["on"]), None if whole else mask, threshold_of(item)))
        elif item.name in ("mask_cleaned", "edge_counts"):
            edge = export.edges(depth, mask, threshold_of(item))
            kept = (mask > 0) & (edge == 0)
            counts = {"edge": int(edge.sum()), "kept": int(kept.sum())}
            yield item.verdict(kept) if item.name == "mask_cleaned" else (counts == item.value(), f"edges {counts}")
        elif item.name == "depth_vis":
            yield item.verdict(masked if item.spec["invalid"] == "black" else published)
        elif item.name.endswith("_exr"):
            if export.can_exr:
                yield exr_verdict(export, item, *((depth, "Y") if item.name == "depth_exr" else (case.input("points"), "RGB")))
        elif item.name.startswith("mesh"):
            yield from mesh_verdicts(export, case, item, compare)
        elif item.name in got:
            yield item.verdict(got[item.name])


# ------------------------------------------------------------------ DUSt3R: views of a scene


def views_of(case):
    count = sum(1 for item in case.inputs if item.name.endswith(".pts3d"))
    return [{name: case.input(f"view{i}.{name}") for name in ("pts3d", "rgb", "mask", "cam2world", "focal")} for i in range(count)]


def camera_of(view):
    height, width = view["mask"].shape
    return Camera((c.c_double * 16)(*view["cam2world"].ravel()), float(view["focal"][0]), width, height, (c.c_uint8 * 3)(255, 0, 0))


def camera_is_right(glb, number, view, transform):
    """The pyramid's tip is the camera's centre, its picture is where the focal length says, and the glTF camera looks through it."""
    tip, corners = np.split(glb.primitive(len(glb.get("meshes")) - 1)["POSITION"][5 * number:5 * number + 5].astype(float), [1])
    to_file = transform @ view["cam2world"]
    height, width = view["mask"].shape
    local = np.c_[corners, np.ones(4)] @ np.linalg.inv(to_file).T
    pixels = local[:, :2] / local[:, 2:3] * view["focal"][0]
    node = next(n for n in glb.get("nodes") if n.get("camera") == number)
    return (np.allclose(tip[0], to_file[:3, 3], atol=1e-6) and np.allclose(np.abs(pixels), [[width / 2, height / 2]], rtol=1e-4)
            and np.allclose(np.array(node["matrix"]).reshape(4, 4).T, to_file @ TO_GLTF, atol=1e-12))


def dust3r_verdicts(export, case, compare):
    views = views_of(case)
    transform = export.transform_from_view(views[0]["cam2world"])
    made, parts, clouds = [], [], []
    for view in views:
        height, width = view["mask"].shape
        pixels, faces, face_colors = export.mesh(export.theo.theo_mesh_from_mask, export.bytes_of(view["mask"]), width, height)
        made.append((faces, face_colors(view["rgb"])))
        export.free_mesh(face_colors)
        parts.append(export.part(export.vertices(pixels, view["pts3d"], None, view["rgb"]), faces))
        clouds.append(export.part(export.vertices(np.flatnonzero(view["mask"]), view["pts3d"], None, view["rgb"])))
    scene = export.write_glb("scene.glb", parts)
    turned = export.write_glb("turned.glb", parts, transform, [camera_of(view) for view in views])
    cloud = export.write_glb("cloud.glb", clouds)
    meshes = [scene.primitive(i) for i in range(len(views))]
    firsts = np.cumsum([0] + [len(m["POSITION"]) for m in meshes])
    dots = [cloud.primitive(i) for i in range(len(views))]
    got = {
        "vertices": np.concatenate([m["POSITION"] for m in meshes]),
        "faces": np.concatenate([m["indices"].reshape(-1, 3) + first for m, first in zip(meshes, firsts)]),
        "face_colors": np.concatenate([colors for _, colors in made]),
        "glb_transform": transform,
        "vertices_transformed": np.concatenate([turned.primitive(i)["POSITION"] for i in range(len(views))]),
        "point_cloud_xyz": np.concatenate([d["POSITION"] for d in dots]),
        "point_cloud_rgb": readers.srgb_bytes(np.concatenate([d["COLOR_0"] for d in dots])[:, :3]),
    }
    for number, view in enumerate(views):
        yield camera_is_right(turned, number, view, transform), f"camera {number}"
        yield np.array_equal(readers.srgb_bytes(meshes[number]["COLOR_0"][:, :3]), view["rgb"].reshape(-1, 3)), f"colours of view {number}"
    for item in case.expected:
        if "view" in item.spec:
            yield item.verdict(made[item.spec["view"]][item.name == "face_colors"])
        else:
            yield item.verdict(got[item.name])


def verdicts(library, case, compare):
    with tempfile.TemporaryDirectory() as folder:
        export = Export(library, folder)
        yield from (moge_verdicts if case.network == "moge2" else dust3r_verdicts)(export, case, compare)
