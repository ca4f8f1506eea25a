/* tgx.h for C++11: references that count themselves, and exceptions that stop at the edge of the extension.
 *
 *     static void gate(tx::Context &c, const tx::Arguments &in, tx::Results &out) {
 *         tx::Tensor made = c.empty_like(in.tensor(0));
 *         const double *x = c.read<double>(in.tensor(0));
 *         double *y = c.write<double>(made);
 *         ...
 *         out.set(0, std::move(made));
 *     }
 *     definition.kernel = tx::kernel<gate>;
 *
 * Header only, over the table alone: nothing of it crosses the edge, so each extension may use another compiler. */
#ifndef TINYGRAD_EXT_TGX_HPP
#define TINYGRAD_EXT_TGX_HPP
#include "tgx.h"

#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace tx {

/* An exception of Python's: throw tx::Error("ValueError", "x must be positive"). */
class Error : public std::exception {
public:
    Error(std::string kind, std::string text) : kind_(std::move(kind)), text_(std::move(text)) {}
    const char *what() const noexcept override { return text_.c_str(); }
    const char *kind() const noexcept { return kind_.c_str(); }

private:
    std::string kind_, text_;
};

/* Thrown where a function of the table failed: the call knows its error already. */
struct Pending {};

template <class T> T *checked(T *found) {
    if (found == nullptr) throw Pending();
    return found;
}
inline void check(int code) {
    if (code) throw Pending();
}

/* Run a part of an extension; what it throws becomes the error of the call. */
template <class F> int guarded(tgx_ctx *c, F run) noexcept {
    try {
        run();
        return 0;
    } catch (const Pending &) {
        return -1;
    } catch (const Error &error) {
        return tgx->fail_text(c, error.kind(), error.what());
    } catch (const std::bad_alloc &) {
        return tgx->fail_text(c, "MemoryError", "no memory");
    } catch (const std::exception &error) {
        return tgx->fail_text(c, "RuntimeError", error.what());
    } catch (...) {
        return tgx->fail_text(c, "RuntimeError", "the extension threw what is no std::exception");
    }
}

/* One reference to a tensor. */
class Tensor {
public:
    Tensor() = default;
    static Tensor owned(tgx_tensor *t) { return Tensor(t); }
    static Tensor borrowed(tgx_tensor *t) { return Tensor(tgx->retain(t)); }
    Tensor(const Tensor &other) : t_(tgx->retain(other.t_)) {}
    Tensor(Tensor &&other) noexcept : t_(other.give()) {}
    Tensor &operator=(Tensor other) noexcept {
        std::swap(t_, other.t_);
        return *this;
    }
    ~Tensor() { tgx->release(t_); }
    tgx_tensor *get() const noexcept { return t_; }
    explicit operator bool() const noexcept { return t_ != nullptr; }
    tgx_tensor *give() noexcept {          /* whoever asks owns it */
        tgx_tensor *t = t_;
        t_ = nullptr;
        return t;
    }

private:
    explicit Tensor(tgx_tensor *t) : t_(t) {}
    tgx_tensor *t_ = nullptr;
};

/* A value for a call. */
class Value {
public:
    Value(const Tensor &t) : v_(tgx_of_tensor(t.get())) {}
    Value(double f) : v_(tgx_of_float(f)) {}
    Value(int64_t i) : v_(tgx_of_int(i)) {}
    Value(int i) : v_(tgx_of_int(i)) {}
    Value(bool b) : v_(tgx_of_int(b)) { v_.tag = TGX_BOOL; }
    Value(const std::vector<int64_t> &row) : v_() {
        v_.tag = TGX_INTS, v_.count = static_cast<uint32_t>(row.size()), v_.u.is = row.data();
    }
    Value(std::nullptr_t) : v_() {}
    Value(const tgx_value &v) : v_(v) {}
    const tgx_value &get() const noexcept { return v_; }

private:
    tgx_value v_;
};

/* The call that runs. */
class Context {
public:
    explicit Context(tgx_ctx *c) : c_(c) {}
    tgx_ctx *get() const noexcept { return c_; }

    tgx_view view(const Tensor &t) const {
        tgx_view v;
        check(tgx->view(c_, t.get(), &v));
        return v;
    }
    tgx_view geometry(const Tensor &t) const {
        tgx_view v;
        check(tgx->geometry(c_, t.get(), &v));
        return v;
    }
    tgx_view view_mut(const Tensor &t) const {
        tgx_view v;
        check(tgx->view_mut(c_, t.get(), &v));
        return v;
    }
    int64_t count(const Tensor &t) const {
        tgx_view v = geometry(t);
        return tgx_count(&v);
    }
    /* The elements of a contiguous tensor of T's dtype; Error for another. */
    template <class T> const T *read(const Tensor &t) const { return static_cast<const T *>(elements<T>(t, view(t))); }
    template <class T> T *write(const Tensor &t) const { return static_cast<T *>(elements<T>(t, view_mut(t))); }

    Tensor empty(tgx_dtype dtype, const std::vector<int64_t> &sizes) const {
        return Tensor::owned(checked(tgx->empty(c_, dtype, static_cast<int32_t>(sizes.size()), sizes.data(), nullptr)));
    }
    Tensor empty_like(const Tensor &t, tgx_dtype dtype = 0) const {
        return Tensor::owned(checked(tgx->empty_like(c_, t.get(), dtype)));
    }
    Tensor contiguous(const Tensor &t) const { return Tensor::owned(checked(tgx->contiguous(c_, t.get()))); }

    tgx_op *resolve(const char *name) const { return checked(tgx->resolve(c_, name)); }
    /* An op of one tensor result. */
    Tensor call(tgx_op *op, std::initializer_list<Value> args) const { return std::move(call(op, args, 1)[0]); }
    /* An op of several. */
    std::vector<Tensor> call(tgx_op *op, std::initializer_list<Value> args, int32_t results) const {
        tgx_value row[24], out[8] = {};
        int32_t n = 0;
        if (args.size() > 24 || results < 1 || results > 8) throw Error("TypeError", "an op has at most 24 arguments and 8 results");
        for (const Value &v : args) row[n++] = v.get();
        check(tgx->call(c_, op, row, n, out, results));
        std::vector<Tensor> made(static_cast<std::size_t>(results));
        bool all = true;
        for (int32_t i = 0; i < results; i++) {
            if (out[i].tag == TGX_TENSOR) made[static_cast<std::size_t>(i)] = Tensor::owned(out[i].u.t);
            else all = false;
        }
        if (!all) throw Error("TypeError", "the op that was called gave no tensor");
        return made;
    }

private:
    template <class T> void *elements(const Tensor &, const tgx_view &v) const {
        if (v.dtype != dtype_of(static_cast<const T *>(nullptr))) throw Error("TypeError", "a tensor is of another dtype than expected");
        if (!tgx_is_contiguous(&v)) throw Error("RuntimeError", "a tensor is not contiguous: take contiguous(), or flag the op TGX_DENSE");
        return v.data;
    }
    static tgx_dtype dtype_of(const float *) { return TGX_FLOAT32; }
    static tgx_dtype dtype_of(const double *) { return TGX_FLOAT64; }
    static tgx_dtype dtype_of(const int64_t *) { return TGX_INT64; }
    static tgx_dtype dtype_of(const int32_t *) { return TGX_INT32; }
    static tgx_dtype dtype_of(const uint8_t *) { return TGX_UINT8; }
    static tgx_dtype dtype_of(const bool *) { return TGX_BOOL8; }
    tgx_ctx *c_;
};

/* Switches recording off as long as it lives. */
class NoGrad {
public:
    explicit NoGrad(Context &c) : c_(c.get()), before_(tgx->no_grad_enter(c_)) {}
    ~NoGrad() { tgx->no_grad_leave(c_, before_); }
    NoGrad(const NoGrad &) = delete;
    NoGrad &operator=(const NoGrad &) = delete;

private:
    tgx_ctx *c_;
    int before_;
};

class Arguments {
public:
    Arguments(const tgx_value *in, int32_t n) : in_(in), n_(n) {}
    const tgx_value &operator[](int32_t i) const {
        if (i < 0 || i >= n_) throw Error("IndexError", "there is no such argument");
        return in_[i];
    }
    int32_t size() const noexcept { return n_; }
    bool given(int32_t i) const { return (*this)[i].tag != TGX_NONE; }
    Tensor tensor(int32_t i) const { return Tensor::borrowed(of(i, TGX_TENSOR).u.t); }
    int64_t integer(int32_t i) const { return of(i, TGX_INT).u.i; }
    double real(int32_t i) const { return of(i, TGX_FLOAT).u.f; }

private:
    const tgx_value &of(int32_t i, uint32_t tag) const {
        if ((*this)[i].tag != tag) throw Error("TypeError", "argument " + std::to_string(i) + " is of another kind");
        return in_[i];
    }
    const tgx_value *in_;
    int32_t n_;
};

class Results {
public:
    Results(tgx_value *out, int32_t m) : out_(out), m_(m) {}
    void set(int32_t i, Tensor t) {
        if (i < 0 || i >= m_) throw Error("IndexError", "there is no such result");
        out_[i] = tgx_of_tensor(t.give());
    }
    Tensor tensor(int32_t i) const {       /* of TGX_FILLS */
        if (i < 0 || i >= m_) throw Error("IndexError", "there is no such result");
        return Tensor::borrowed(out_[i].u.t);
    }

private:
    tgx_value *out_;
    int32_t m_;
};

/* The node, in setup and in backward. */
class Node {
public:
    Node(tgx_ctx *c, tgx_node *node) : c_(c), node_(node) {}
    void save(uint32_t place, const Tensor &t) const { check(tgx->save(c_, node_, place, t.get())); }
    Tensor saved(uint32_t place) const { return Tensor::owned(checked(tgx->unpack(c_, node_, place))); }
    bool needs(int32_t edge) const {
        int found = tgx->needs(c_, node_, edge);
        if (found < 0) throw Pending();
        return found != 0;
    }

private:
    tgx_ctx *c_;
    tgx_node *node_;
};

class Gradients {
public:
    Gradients(tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs, int32_t m) : grads_(grads), n_(n), inputs_(inputs), m_(m) {}
    Tensor of_output(int32_t i) const {
        if (i < 0 || i >= n_) throw Error("IndexError", "there is no such output");
        return Tensor::borrowed(grads_[i]);
    }
    void set(int32_t edge, Tensor t) {
        if (edge < 0 || edge >= m_) throw Error("IndexError", "there is no such edge");
        tgx->release(inputs_[edge]);
        inputs_[edge] = t.give();
    }

private:
    tgx_tensor *const *grads_;
    int32_t n_;
    tgx_tensor **inputs_;
    int32_t m_;
};

/* ---- the functions of a definition ------------------------------------------------------------------------------- */

template <void (*F)(Context &, const Arguments &, Results &)>
int kernel(tgx_ctx *c, void *, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    return guarded(c, [&] {
        Context context(c);
        Results results(out, m);
        F(context, Arguments(in, n), results);
    });
}

/* F(context, node, arguments, results) */
template <void (*F)(Context &, Node &, const Arguments &, const Arguments &)>
int setup(tgx_ctx *c, void *, tgx_node *node, void *, const tgx_value *in, int32_t n, const tgx_value *out, int32_t m) {
    return guarded(c, [&] {
        Context context(c);
        Node made(c, node);
        F(context, made, Arguments(in, n), Arguments(out, m));
    });
}

template <void (*F)(Context &, Node &, Gradients &)>
int backward(tgx_ctx *c, tgx_node *node, void *, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs, int32_t m) {
    return guarded(c, [&] {
        Context context(c);
        Node made(c, node);
        Gradients row(grads, n, inputs, m);
        F(context, made, row);
    });
}

/* As the first tensor is: for ops whose results look like it. */
inline int like_first(tgx_ctx *c, void *, const tgx_value *in, int32_t, tgx_geometry *out, int32_t m) {
    return guarded(c, [&] {
        tgx_view v = Context(c).geometry(Tensor::borrowed(in[0].u.t));
        for (int32_t k = 0; k < m; k++) {
            out[k].ndim = v.ndim, out[k].dtype = v.dtype;
            for (int32_t i = 0; i < v.ndim; i++) out[k].sizes[i] = v.shape[i];
        }
    });
}

/* A definition to be filled in. */
inline tgx_op_def op(const char *schema) {
    tgx_op_def d = tgx_op_def();
    d.size = static_cast<uint32_t>(sizeof d);
    d.schema = schema;
    return d;
}

}  // namespace tx
#endif
