# Makes the data sets and the numbers beside this file: Rscript make.R, in this folder (R 4.2; survival, nnet, MASS, AER,
# brglm2, sandwich, jsonlite are on CRAN). Every data set is one of R's own packages datasets, MASS, survival, carData or AER.
suppressMessages({library(AER); library(MASS); library(nnet); library(brglm2); library(sandwich)})
options(digits = 15)
found <- list()

number <- function(x) if (is.null(x)) NULL else as.numeric(x)

keep <- function(name, data, entry) {
  write.csv(data, paste0(name, ".csv"), row.names = FALSE, quote = FALSE)
  found[[name]] <<- entry
}

# λ of each term by refitting without it; z is the fit's own data.
ratios <- function(fit, terms, refit) {
  sapply(terms, function(term) 2 * (as.numeric(logLik(fit)) - as.numeric(logLik(refit(term)))))
}

logit <- function(name, data, action, terms, source, weights = NULL, cluster = NULL, firth = FALSE) {
  data <- data[, c(action, terms, weights, cluster)]
  data <- data[complete.cases(data), ]
  data$.y <- as.integer(factor(data[[action]])) == 2
  data$.w <- if (is.null(weights)) 1 else data[[weights]]
  formula <- as.formula(paste(".y ~", paste(terms, collapse = " + ")))
  tight <- list(epsilon = 1e-14, maxit = 100)
  fit <- glm(formula, binomial, data, weights = .w, control = tight)
  without <- function(term) glm(update(formula, paste(". ~ . -", term)), binomial, data, weights = .w, control = tight)
  entry <- list(kind = "logit", source = source, action = action, features = terms, weights = weights,
    reference = levels(factor(data[[action]]))[1], pairs = sum(data$.w), coefficients = as.list(coef(fit)),
    errors = as.list(sqrt(diag(vcov(fit)))), log_likelihood = as.numeric(logLik(fit)),
    null = as.numeric(logLik(glm(.y ~ 1, binomial, data, weights = .w, control = tight))),
    aic = AIC(fit), bic = -2 * as.numeric(logLik(fit)) + length(coef(fit)) * log(sum(data$.w)),
    statistics = as.list(ratios(fit, terms, without)))
  if (!is.null(cluster)) {
    entry$cluster <- cluster
    entry$clustered <- as.list(sqrt(diag(vcovCL(fit, cluster = data[[cluster]]))))
  }
  if (firth) {
    penalised <- glm(formula, binomial, data, method = "brglmFit", type = "AS_mean", epsilon = 1e-13, maxit = 10000)
    entry$firth <- as.list(coef(penalised))
    entry$firth_errors <- as.list(sqrt(diag(vcov(penalised))))
  }
  keep(name, data[, c(action, terms, weights, cluster)], entry)
}

multinomial <- function(name, data, action, terms, source, weights = NULL) {
  data <- data[, c(action, terms, weights)]
  data <- data[complete.cases(data), ]
  data$.y <- factor(data[[action]])
  data$.w <- if (is.null(weights)) 1 else data[[weights]]
  formula <- as.formula(paste(".y ~", paste(terms, collapse = " + ")))
  one <- function(f) multinom(f, data, weights = .w, trace = FALSE, maxit = 5000, abstol = 1e-14, reltol = 1e-14, Hess = TRUE)
  fit <- one(formula)
  entry <- list(kind = "multinomial", source = source, action = action, features = terms, weights = weights,
    reference = levels(data$.y)[1], pairs = sum(data$.w), log_likelihood = as.numeric(logLik(fit)),
    null = as.numeric(logLik(one(.y ~ 1))), aic = AIC(fit),
    coefficients = lapply(split(coef(fit), rownames(coef(fit))), function(v) setNames(as.list(v), colnames(coef(fit)))),
    statistics = as.list(ratios(fit, terms, function(term) one(update(formula, paste(". ~ . -", term))))))
  keep(name, data[, c(action, terms, weights)], entry)
}

linear <- function(name, data, action, terms, source, cluster = NULL) {
  data <- data[, c(action, terms, cluster)]
  data <- data[complete.cases(data), ]
  formula <- as.formula(paste(action, "~", paste(terms, collapse = " + ")))
  fit <- lm(formula, data)
  one <- drop1(fit, test = "F")
  entry <- list(kind = "linear", source = source, action = action, features = terms, pairs = nrow(data),
    coefficients = as.list(coef(fit)), errors = as.list(sqrt(diag(vcov(fit)))), log_likelihood = as.numeric(logLik(fit)),
    null = as.numeric(logLik(lm(as.formula(paste(action, "~ 1")), data))),
    aic = AIC(fit), bic = BIC(fit), p_values = setNames(as.list(one[["Pr(>F)"]][-1]), rownames(one)[-1]),
    statistics = as.list(ratios(fit, terms, function(term) lm(update(formula, paste(". ~ . -", term)), data))))
  if (!is.null(cluster)) {
    entry$cluster <- cluster
    entry$clustered <- as.list(sqrt(diag(vcovCL(fit, cluster = data[[cluster]]))))
  }
  keep(name, data, entry)
}

data(MurderRates); MurderRates$executed <- ifelse(MurderRates$executions > 0, "yes", "no")
logit("murder_rates", MurderRates, "executed", c("time", "income", "noncauc", "lfp", "southern"), "AER::MurderRates", firth = TRUE)
logit("infert", infert, "case", c("age", "parity", "induced", "spontaneous"), "datasets::infert", cluster = "stratum")
logit("mtcars", mtcars, "am", c("hp", "drat"), "datasets::mtcars", firth = TRUE)
logit("birthwt", birthwt, "low", c("age", "lwt", "smoke", "ht", "ui", "ptl"), "MASS::birthwt")
pima <- rbind(Pima.tr, Pima.te)
logit("pima", pima, "type", c("npreg", "glu", "bp", "bmi", "ped", "age"), "MASS::Pima.tr and Pima.te")
logit("bacteria", bacteria, "y", c("trt", "week"), "MASS::bacteria", cluster = "ID")
ucb <- as.data.frame(UCBAdmissions)
logit("berkeley", ucb, "Admit", c("Gender", "Dept"), "datasets::UCBAdmissions", weights = "Freq")
titanic <- as.data.frame(Titanic)
logit("titanic", titanic[titanic$Freq > 0, ], "Survived", c("Class", "Sex", "Age"), "datasets::Titanic", weights = "Freq")
logit("menarche", do.call(rbind, lapply(c("yes", "no"), function(a) data.frame(age = menarche$Age, menarche = a,
  women = if (a == "yes") menarche$Menarche else menarche$Total - menarche$Menarche)))[c(1:50), ], "menarche", "age",
  "MASS::menarche", weights = "women")
data(SwissLabor)
logit("swiss_labor", SwissLabor, "participation", c("income", "age", "education", "youngkids", "oldkids", "foreign"), "AER::SwissLabor")
multinomial("housing", housing, "Sat", c("Infl", "Type", "Cont"), "MASS::housing", weights = "Freq")
multinomial("iris", transform(iris, Size = Sepal.Width), "Species", "Size", "datasets::iris")
multinomial("caith", {x <- as.data.frame(as.table(as.matrix(caith))); names(x) <- c("eyes", "hair", "people"); x}, "eyes", "hair",
  "MASS::caith", weights = "people")
linear("attitude", attitude, "rating", c("complaints", "privileges", "learning", "raises", "critical", "advance"), "datasets::attitude")
linear("chick_weight", ChickWeight, "weight", c("Time", "Diet"), "datasets::ChickWeight", cluster = "Chick")
linear("cars", cars, "dist", "speed", "datasets::cars")

writeLines(jsonlite::toJSON(found, digits = NA, auto_unbox = TRUE, pretty = TRUE, null = "null"), "numbers.json")
