"""libtheo through ctypes: what the golden tests use of the public API, and the stages of libtheo_stages."""
import contextlib
import ctypes as c

import numpy as np

f32p, i32p, voidp = c.POINTER(c.c_float), c.POINTER(c.c_int32), c.c_void_p

U8, U16, F32 = 0, 1, 2
NMS = {"iterative": 0, "single": 1, "greedy": 2}
BORDER = {"four": 0, "hf": 1}
GRAY = {"red": 0, "rgb601": 1, "luma": 2}
ORDER = {"score": 0, "raster": 1}
SAMPLING = {"A": 0, "B_new": 1, "B_old": 2, "C": 3}
FIT_EXACT, FIT_NATIVE = 0, 1
FILTER = {"bilinear": 0, "bicubic": 1, "lanczos": 2}
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("file", c.c_char * 512), ("place", c.c_char * 160), ("message", c.c_char * 1024)]


class Image(c.Structure):
    _fields_ = [("width", c.c_int), ("height", c.c_int), ("channels", c.c_int), ("type", c.c_int), ("row_bytes", c.c_size_t),
                ("pixels", voidp), ("exif_orientation", c.c_int), ("exif_focal_35mm", c.c_int), ("orientation_applied", c.c_bool), ("truncated", c.c_bool),
                ("format", c.c_char_p), ("owner", voidp)]


class DecodeOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("orientation", c.c_int), ("allow_truncated", c.c_bool), ("max_pixels", c.c_int64),
                ("keep_16_bit", c.c_bool), ("keep_alpha", c.c_bool), ("channels", c.c_int)]


class ModelOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_int), ("pool", voidp), ("precision", c.c_char_p), ("bn_eps", c.c_double),
                ("verify_checksums", c.c_bool), ("log", voidp), ("log_user", voidp)]


class DetectOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("max_keypoints", c.c_int), ("threshold", c.c_float), ("nms", c.c_int), ("nms_radius", c.c_int),
                ("border", c.c_int), ("border_mode", c.c_int), ("gray", c.c_int), ("fit", c.c_int), ("net_width", c.c_int),
                ("net_height", c.c_int), ("long_side", c.c_int), ("order", c.c_int), ("sampling", c.c_int), ("pixel_centers", c.c_bool),
                ("descriptors", c.c_bool), ("bgr", c.c_bool)]


class Timing(c.Structure):
    _fields_ = [("preprocess", c.c_double), ("forward", c.c_double), ("postprocess", c.c_double), ("total", c.c_double)]


class Keypoints(c.Structure):
    _fields_ = [("count", c.c_int), ("descriptor_dim", c.c_int), ("xy", f32p), ("scores", f32p), ("descriptors", f32p),
                ("image_width", c.c_int), ("image_height", c.c_int), ("net_width", c.c_int), ("net_height", c.c_int),
                ("scale_x", c.c_float), ("scale_y", c.c_float), ("model", c.c_char_p), ("timing", Timing)]


class Maps(c.Structure):
    _fields_ = [("net_width", c.c_int), ("net_height", c.c_int), ("cells_x", c.c_int), ("cells_y", c.c_int), ("descriptor_dim", c.c_int),
                ("scores", f32p), ("descriptors", f32p), ("logits", f32p), ("raw", f32p), ("timing", Timing)]


class GeometryOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("fit", c.c_int), ("tokens", c.c_int), ("resolution_level", c.c_double), ("fov_x", c.c_double),
                ("mask_threshold", c.c_float), ("force_projection", c.c_bool), ("apply_mask", c.c_bool), ("invalid", c.c_int),
                ("metric_scale", c.c_float), ("scale", c.c_float), ("normal", c.c_bool), ("bgr", c.c_bool),
                ("sequence", voidp), ("focal_px", c.c_double), ("fov_from_exif", c.c_bool)]


class Geometry(c.Structure):
    _fields_ = [("width", c.c_int), ("height", c.c_int), ("points", f32p), ("depth", f32p), ("normal", f32p), ("mask", c.POINTER(c.c_uint8)),
                ("intrinsics", c.c_float * 9), ("intrinsics_pixels", c.c_float * 9), ("fov_x", c.c_float), ("fov_y", c.c_float),
                ("focal", c.c_float), ("shift", c.c_float), ("metric_scale", c.c_float), ("network_metric_scale", c.c_float),
                ("is_metric", c.c_bool), ("network_is_metric", c.c_bool), ("mask_coverage", c.c_float), ("token_rows", c.c_int), ("token_columns", c.c_int), ("is_degenerate", c.c_bool),
                ("model", c.c_char_p), ("timing", Timing)]


class MatchOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ratio", c.c_float), ("min_similarity", c.c_float), ("pool", voidp)]


class Matches(c.Structure):
    _fields_ = [("count", c.c_int), ("pairs", i32p), ("similarity", f32p)]


LAYER_FN = c.CFUNCTYPE(None, c.c_char_p, f32p, c.c_int, c.c_int, c.c_int, c.c_int)
TENSOR_FN = c.CFUNCTYPE(None, c.c_char_p, c.c_int, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_int64), voidp)


UNSUPPORTED = 7


class Failure(Exception):
    """A call of the library failed; the text is its message."""

    def __init__(self, error):
        super().__init__(error.message.decode())
        self.status = error.status


def copied(pointer, *shape):
    """The numbers behind a pointer as an array of that shape; None for NULL."""
    if not pointer:
        return np.zeros(shape, np.float32) if 0 in shape else None
    return np.ctypeslib.as_array(pointer, shape).copy()


def pointer(array, kind=c.c_float):
    return array.ctypes.data_as(c.POINTER(kind))


class Library:
    def __init__(self, library, stages):
        self.theo, self.stages = c.CDLL(library), c.CDLL(stages)
        self.theo.theo_cpu_level.restype = c.c_char_p
        for name in ("theo_image_free", "theo_model_close", "theo_session_close", "theo_keypoints_free", "theo_matches_free",
                     "theo_superpoint_maps_free", "theo_buffer_free", "theo_geometry_free"):
            getattr(self.theo, name).argtypes = [voidp]
            getattr(self.theo, name).restype = None
        self.level = self.theo.theo_cpu_level().decode()

    def call(self, function, *arguments):
        error = Error()
        if function(*arguments, c.byref(error)):
            raise Failure(error)

    # -------------------------------------------------------------- images

    def image(self, array):
        """A theo_image over the memory of an 8-bit array, which the result keeps alive."""
        array = np.ascontiguousarray(array)
        height, width = array.shape[:2]
        image = Image(width, height, 1 if array.ndim == 2 else array.shape[2], U8, 0, array.ctypes.data_as(voidp))
        image.array = array
        return image

    @contextlib.contextmanager
    def loaded(self, path, orientation="ignore"):
        image, options = c.POINTER(Image)(), DecodeOptions()
        self.theo.theo_decode_options_init(c.byref(options))
        options.orientation = ("ignore", "apply").index(orientation)
        self.call(self.theo.theo_image_load, c.byref(image), path.encode(), c.byref(options))
        try:
            yield image.contents
        finally:
            self.theo.theo_image_free(image)

    def pixels(self, image):
        """[height, width, channels] of an 8-bit image."""
        row = image.row_bytes or image.width * image.channels
        raw = np.ctypeslib.as_array(c.cast(image.pixels, c.POINTER(c.c_uint8)), (image.height, row))
        return raw[:, : image.width * image.channels].reshape(image.height, image.width, image.channels).copy()

    def resized(self, array, width, height, filter_name):
        source, result = self.image(array), c.POINTER(Image)()
        self.call(self.theo.theo_image_resize, c.byref(result), c.byref(source), width, height, FILTER[filter_name])
        try:
            out = self.pixels(result.contents)
        finally:
            self.theo.theo_image_free(result)
        return out[:, :, 0] if array.ndim == 2 else out

    def plane(self, image, options):
        """The plane [height, width] that the network would read."""
        data, width, height = f32p(), c.c_int(), c.c_int()
        self.call(self.theo.theo_detect_plane, c.byref(image), c.byref(options), c.byref(data), c.byref(width), c.byref(height))
        try:
            return copied(data, height.value, width.value)
        finally:
            self.theo.theo_buffer_free(data)

    # -------------------------------------------------------------- models

    def synthesize(self, name, config_json, path):
        self.call(self.theo.theo_synthesize, name.encode(), config_json.encode(), path.encode())

    def open(self, path, bn_eps=0.0):
        return Session(self, path, bn_eps)

    def detect_options(self, **fields):
        options = DetectOptions()
        self.theo.theo_detect_options_init(c.byref(options))
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    # -------------------------------------------------------------- matching

    def match(self, a, b, ratio=0.0, min_similarity=-2.0):
        """(pairs [m, 2], similarity [m]) of two arrays of descriptors."""
        sets = []
        for rows in (a, b):
            rows = np.ascontiguousarray(rows, np.float32)
            points = np.zeros((len(rows), 3), np.float32)
            keypoints = Keypoints(len(rows), rows.shape[1], pointer(points), pointer(points), pointer(rows), model=b"golden")
            keypoints.held = (rows, points)
            sets.append(keypoints)
        options, result = MatchOptions(), c.POINTER(Matches)()
        self.theo.theo_match_options_init(c.byref(options))
        options.ratio, options.min_similarity = ratio, min_similarity
        self.call(self.theo.theo_match, c.byref(sets[0]), c.byref(sets[1]), c.byref(options), c.byref(result))
        try:
            m = result.contents
            pairs = copied(m.pairs, m.count, 2) if m.count else np.zeros((0, 2), np.int32)
            return pairs, copied(m.similarity, m.count)
        finally:
            self.theo.theo_matches_free(result)

    # -------------------------------------------------------------- stages

    def select(self, scores, o):
        """(xy int32 [n, 2], scores [n]) by the options of a case."""
        scores = np.ascontiguousarray(scores, np.float32)
        height, width = scores.shape
        rule = (c.c_int * 6)(NMS[o["nms"]], o["radius"], o["border"], BORDER[o["border_mode"]], ORDER[o["order"]], o["top_k"])
        xy, values, error = np.empty((scores.size, 2), np.int32), np.empty(scores.size, np.float32), Error()
        count = self.stages.stage_select(pointer(scores), width, height, rule, c.c_float(o["threshold"]), pointer(xy, c.c_int32),
                                         pointer(values), scores.size, c.byref(error))
        if count < 0:
            raise Failure(error)
        return xy[:count], values[:count]

    def sample(self, cells, points, rule, net_width, net_height):
        """Descriptors [n, C] of points (x, y) in a map [C, height, width]."""
        channels, height, width = cells.shape
        cells = np.ascontiguousarray(cells.transpose(1, 2, 0), np.float32)
        points = np.ascontiguousarray(points, np.float32)
        out = np.empty((len(points), channels), np.float32)
        self.stages.stage_sample(pointer(cells), width, height, channels, net_width, net_height, SAMPLING[rule], pointer(points),
                                 len(points), pointer(out))
        return out

    def layers(self, path, bn_eps, plane):
        """Output of every layer by name, [C, h, w]."""
        found = {}

        def each(name, data, height, width, channels, pitch):
            rows = np.lib.stride_tricks.as_strided(np.ctypeslib.as_array(data, (1,)), (height * width, channels), (4 * pitch, 4))
            found[name.decode()] = rows.reshape(height, width, channels).transpose(2, 0, 1).copy()

        plane = np.ascontiguousarray(plane, np.float32)
        self.call(self.stages.stage_layers, path.encode(), c.c_double(bn_eps), pointer(plane), plane.shape[1], plane.shape[0], LAYER_FN(each))
        return found

    def moge(self, path, image, fit, tokens, traced):
        """Stages by name, [h, w, C]: all of them with nothing folded, or those of a session."""
        found = {}

        def each(name, data, height, width, channels, pitch):
            rows = np.lib.stride_tricks.as_strided(np.ctypeslib.as_array(data, (1,)), (height * width, channels), (4 * pitch, 4))
            found[name.decode()] = rows.reshape(height, width, channels).copy()

        self.call(self.stages.stage_moge, path.encode(), c.byref(image), fit, tokens, int(traced), LAYER_FN(each))
        return found

    def focal(self, points, mask, focal):
        """(focal, shift, evaluations); focal: None, or given."""
        points, mask = np.ascontiguousarray(points, np.float32), np.ascontiguousarray(mask, np.float32)
        solved = (c.c_double * 3)()
        self.stages.stage_focal(pointer(points), pointer(mask), points.shape[1], points.shape[0], c.c_double(focal or 0), solved)
        return solved[0], solved[1], int(solved[2])

    # -------------------------------------------------------------- resampling: maps are [h, w, C]

    def bilinear(self, x, size):
        x = np.ascontiguousarray(x, np.float32)
        out = np.empty((*size, x.shape[2]), np.float32)
        self.stages.stage_bilinear(pointer(x), (c.c_int * 2)(*x.shape[:2]), (c.c_int * 2)(*size), x.shape[2], pointer(out))
        return out

    def antialias(self, x, size, bicubic):
        x = np.ascontiguousarray(x, np.float32)
        out = np.empty((*size, 3), np.float32)
        self.call(self.stages.stage_antialias, pointer(x), (c.c_int * 2)(*x.shape[:2]), (c.c_int * 2)(*size), int(bicubic), pointer(out))
        return out

    def upsample2(self, x):
        x = np.ascontiguousarray(x, np.float32)
        out = np.empty((2 * x.shape[0], 2 * x.shape[1], x.shape[2]), np.float32)
        self.call(self.stages.stage_upsample2, pointer(x), (c.c_int * 2)(*x.shape[:2]), x.shape[2], pointer(out))
        return out

    def nearest_index(self, size, count):
        index = np.empty(count, np.int32)
        self.stages.stage_nearest(size, count, pointer(index, c.c_int32))
        return index

    def positions(self, table, rows, columns):
        """Table [1 + side^2, C] for a grid: [1 + rows * columns, C]."""
        table = np.ascontiguousarray(table, np.float32)
        out = np.empty((1 + rows * columns, table.shape[1]), np.float32)
        self.stages.stage_positions(pointer(table), round((len(table) - 1) ** 0.5), table.shape[1], rows, columns, pointer(out))
        return out

    def view_plane(self, aspect, size):
        out = np.empty((*size, 2), np.float32)
        self.stages.stage_view_plane(c.c_double(aspect), *size, pointer(out))
        return out

    # -------------------------------------------------------------- MoGe

    def moge_grid(self, width, height, tokens):
        grid = (c.c_int * 4)()
        self.stages.stage_moge_grid(width, height, tokens, grid)
        return list(grid)

    def tensors(self, path):
        """(name, dtype, shape, stride, raw bytes) of every tensor of a checkpoint."""
        found = []

        def each(name, dtype, rank, shape, stride, data):
            sizes, steps = [shape[i] for i in range(rank)], [stride[i] for i in range(rank)]
            span = 1 + sum((n - 1) * step for n, step in zip(sizes, steps))
            kind = np.dtype(DTYPES[dtype])
            found.append((name.decode(), DTYPES[dtype], sizes, steps, c.string_at(data, span * kind.itemsize)))

        self.call(self.stages.stage_tensors, path.encode(), TENSOR_FN(each))
        return found


class Session:
    """A model with one session."""

    def __init__(self, library, path, bn_eps):
        self.library, self.theo = library, library.theo
        options, model, session = ModelOptions(), voidp(), voidp()
        self.theo.theo_model_options_init(c.byref(options))
        options.bn_eps = bn_eps
        library.call(self.theo.theo_model_open, c.byref(model), path.encode(), c.byref(options))
        try:
            library.call(self.theo.theo_session_open, c.byref(session), model, None)
        finally:
            self.theo.theo_model_close(model)
        self.handle, self.path, self.bn_eps = session, path, bn_eps

    def close(self):
        self.theo.theo_session_close(self.handle)
        self.handle = None

    def raw(self, plane):
        """scores [H, W], logits [65, h, w], descriptors and raw [C, h, w] (None without a descriptor head)."""
        plane, result = np.ascontiguousarray(plane, np.float32), c.POINTER(Maps)()
        self.library.call(self.theo.theo_detect_raw, self.handle, pointer(plane), plane.shape[1], plane.shape[0], 15, c.byref(result))
        try:
            m = result.contents
            h, w, dim = m.cells_y, m.cells_x, m.descriptor_dim
            return {"S": copied(m.scores, 8 * h, 8 * w), "logits": copied(m.logits, 65, h, w),
                    "D": copied(m.descriptors, dim, h, w) if dim else None, "raw": copied(m.raw, dim, h, w) if dim else None}
        finally:
            self.theo.theo_superpoint_maps_free(result)

    def detect(self, image, options):
        """(xy in pixels of the image [n, 2], scores [n], descriptors [n, C] or None)"""
        result = c.POINTER(Keypoints)()
        self.library.call(self.theo.theo_detect, self.handle, c.byref(image), c.byref(options), c.byref(result))
        try:
            k = result.contents
            n, dim = k.count, k.descriptor_dim
            return copied(k.xy, n, 2), copied(k.scores, n), copied(k.descriptors, n, dim) if dim else None
        finally:
            self.theo.theo_keypoints_free(result)

    def geometry(self, image, **fields):
        """What theo_geometry_run gives, by name."""
        options, result = GeometryOptions(), c.POINTER(Geometry)()
        self.theo.theo_geometry_options_init(c.byref(options))
        for name, value in fields.items():
            setattr(options, name, value)
        self.library.call(self.theo.theo_geometry_run, self.handle, c.byref(image), c.byref(options), c.byref(result))
        try:
            g = result.contents
            h, w = g.height, g.width
            return {"points": copied(g.points, h, w, 3), "depth": copied(g.depth, h, w), "normal": copied(g.normal, h, w, 3),
                    "mask": copied(g.mask, h, w), "intrinsics": np.array(g.intrinsics).reshape(3, 3), "fx_pixels": g.intrinsics_pixels[0],
                    "fy_pixels": g.intrinsics_pixels[4], "fx": g.intrinsics[0], "fy": g.intrinsics[4], "fov_x_deg": g.fov_x,
                    "fov_y_deg": g.fov_y, "focal": g.focal, "shift": g.shift, "metric_scale": g.network_metric_scale}
        finally:
            self.theo.theo_geometry_free(result)
