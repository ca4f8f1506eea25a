"""Small algorithms, each of several constructs."""

from typing import List


@case(7)
def collatz(n: int):
    steps: List[int] = [n]
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps.append(n)
    return steps


@case(48, 36)
def greatest_divisor(a: int, b: int = 18):
    while b != 0:
        a, b = b, a % b
    return a


@case(30)
def primes(n: int):
    out: List[int] = []
    for i in range(2, n):
        is_prime = True
        for p in out:
            if i % p == 0:
                is_prime = False
                break
        if is_prime:
            out.append(i)
    return out


@case(([5, 3, 9, 1],), ([],))
def bubble_sort(items: List[int]):
    for i in range(len(items)):
        for j in range(len(items) - i - 1):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items


@case(10)
def fibonacci(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case((torch.ones(3), 4), (torch.ones(3), 0))
def recurrence(x, n: int):
    h = torch.zeros_like(x)
    states: List[torch.Tensor] = []
    for i in range(n):
        h = torch.tanh(h * 0.5 + x)
        if i % 2 == 0:
            states.append(h)
    return h, states
